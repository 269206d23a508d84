import type { PageLayer } from "../contract/page";

interface LayerStepperProps {
  layers: readonly PageLayer[];
  layer: number;
  onChoose: (layer: number) => void;
  onStep: (step: number) => void;
}

/** ‹ Layer 3 / 5 ›, with all layers in a drop-down. */
export function LayerStepper({ layers, layer, onChoose, onStep }: LayerStepperProps) {
  const last = layers[layers.length - 1].layer;
  const kinds = new Set(layers.map(({ kind }) => kind));
  return (
    <div class="stepper" role="group" aria-label="Layer">
      <StepButton sign="‹" name="Previous layer ([)" off={layer === layers[0].layer} onStep={() => onStep(-1)} />
      <span class="layer-choice">
        <select
          aria-label="Layer"
          value={String(layer)}
          onChange={(event) => onChoose(Number(event.currentTarget.value))}
        >
          {layers.map(({ layer: number, kind }) => (
            <option key={number} value={String(number)}>
              {kinds.size > 1 ? `Layer ${number} (${kind})` : `Layer ${number}`}
            </option>
          ))}
        </select>
        <small title={`The last layer is ${last}`}>/ {last}</small>
      </span>
      <StepButton sign="›" name="Next layer (])" off={layer === last} onStep={() => onStep(1)} />
    </div>
  );
}

interface StepButtonProps {
  sign: string;
  name: string;
  off: boolean;
  onStep: () => void;
}

function StepButton({ sign, name, off, onStep }: StepButtonProps) {
  return (
    <button class="step" aria-label={name} title={name} disabled={off} onClick={onStep}>
      {sign}
    </button>
  );
}
