"""Small models of several shapes with random weights, and one with a circuit planted by hand."""

import torch
import transformers

SMALL = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
GROUPED = {**SMALL, "num_key_value_heads": 2}
OPT = {name: size for name, size in SMALL.items() if name != "intermediate_size"}
T5 = {"vocab_size": 97, "d_model": 32, "d_kv": 8, "num_heads": 4, "num_layers": 3, "d_ff": 48}
GPT = {"vocab_size": 97, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}
GPT |= {"bos_token_id": 1, "eos_token_id": 1}
SHAPES = {
    "GPT2LMHeadModel": GPT,
    "LlamaForCausalLM": GROUPED,
    "Gemma2ForCausalLM": {**GROUPED, "head_dim": 8},
    "GPTJForCausalLM": {**GPT, "rotary_dim": 4},
    "BertForMaskedLM": SMALL,
    "T5ForConditionalGeneration": T5,
    "OPTForCausalLM": {**OPT, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "Phi3ForCausalLM": {**GROUPED, "pad_token_id": 0, "eos_token_id": 1},
    "Qwen3ForCausalLM": {**GROUPED, "head_dim": 8},
    "Olmo2ForCausalLM": {**GROUPED, "eos_token_id": 1},
}


def random_model(name, **sizes):
    """A model with random biases and gains: zeros and ones would hide errors."""
    cls = getattr(transformers, name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = cls(cls.config_class(**sizes)).eval()
        with torch.no_grad():
            for weight in model.parameters():
                if weight.ndim == 1:
                    weight.add_(torch.randn_like(weight) * 0.3)
                else:
                    weight.mul_(4)
    return model


def ids_of(model, count=10):
    draw = torch.Generator().manual_seed(1)
    given = {"input_ids": torch.randint(5, 90, (1, count), generator=draw)}
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = torch.randint(5, 90, (1, 6), generator=draw)
    return given


def planted_model():
    """A model of two layers without feed-forward parts that writes what followed the same token:
    0-1 hands on the token before, 1-2 looks for its own token among these, else at the first place.
    """
    width, head = 64, 16
    own, sizes = {"n_head": 4, "n_layer": 2, "n_inner": 4, "tie_word_embeddings": False}, {}
    sizes = {"vocab_size": 8, "n_positions": 8, "n_embd": width}
    config = transformers.GPT2Config(**sizes, **own, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config).eval()
    word, before, answer, place = (slice(8 * at, 8 * at + 8) for at in range(4))
    eye, body = torch.eye(8), model.transformer
    one, two = (slice(head * at, head * at + 8) for at in (1, 2))

    def of(part, columns):  # c_attn makes queries, keys and values
        return slice(part * width + columns.start, part * width + columns.stop)

    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        for module in model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.weight.fill_(1.0)
        body.wte.weight[:, word] = eye
        body.wpe.weight[:, place] = eye
        # much that never changes, so that norms hardly do
        body.wpe.weight[:, 40:48] = 8.0 * torch.tensor([1, -1] * 4)
        first, second = (block.attn for block in body.h)
        first.c_attn.weight[place, of(0, one)] = 600.0 * torch.diag(torch.ones(7), -1)
        first.c_attn.weight[place, of(1, one)] = eye
        first.c_attn.weight[word, of(2, one)] = eye
        first.c_proj.weight[one, before] = 3.0 * eye
        second.c_attn.weight[word, of(0, two)] = 600.0 * eye
        second.c_attn.weight[before, of(1, two)] = eye
        second.c_attn.weight[word, of(2, two)] = eye
        second.c_attn.bias[two.stop] = 30.0
        second.c_attn.weight[place.start, width + two.stop] = 1.0
        second.c_proj.weight[two, answer] = 3.0 * eye
        model.lm_head.weight[:, answer] = 9.0 * eye
    return model
