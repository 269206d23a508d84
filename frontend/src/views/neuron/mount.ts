import { mounting } from "../../parts/mount";
import { withBase } from "../../styles";
import controls from "../../styles/controls.css";
import { NeuronView } from "./NeuronView";
import neuron from "./neuron.css";

export const mountNeuronView = mounting(NeuronView, withBase(controls, neuron));
