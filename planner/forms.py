"""What people type to add a model, a GPU type, a host or a token; each form hands a service its keyword arguments."""

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm

from planner.core.errors import BadInput, PlanningError
from planner.core.units import bytes_from_gib
from planner.core.words import flops_from_tera, rate_from_gb_per_second
from planner.models import MOST_GPUS_PER_HOST, Confidence
from planner.strict_json import float_or_text, read_json

LARGEST_UPLOAD_BYTES = 2_000_000
LARGEST_FIGURE = 1e9  # in the units of a datasheet; as bytes it still fits a database's integer


class PlannerForm(forms.Form):
    """A form that can take a fault of the planner and show it beside its field."""

    required_css_class = "required"

    def refuse(self, fault: PlanningError) -> None:
        """Show each fault beside the field it names, or above the form."""
        for one in getattr(fault, "faults", (fault,)):
            message = f"{one.message} Fix: {one.fix}"
            self.add_error(one.field if one.field in self.fields else None, message)


def _figure(label: str, unit: str, *, required: bool = False, help_text: str = "") -> forms.FloatField:
    return forms.FloatField(
        label=f"{label} ({unit})", min_value=0.001, max_value=LARGEST_FIGURE, required=required, help_text=help_text
    )


def _whole(label: str, *, required: bool = True, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(label=label, min_value=1, required=required, help_text=help_text)


class GpuTypeForm(PlannerForm):
    """A GPU type by hand, or one line of a CSV file."""

    name = forms.CharField(max_length=100, help_text="As people say it, e.g. A100 SXM4 80GB")
    total_gib = _figure("Total memory", "GiB", required=True, help_text="As CUDA reports it, not the nameplate")
    total_low_gib = _figure("Lowest seen", "GiB", help_text="Where drivers differ")
    total_high_gib = _figure("Highest seen", "GiB", help_text="Where drivers differ")
    compute_capability = forms.RegexField(r"^\d{1,2}\.\d$", required=False, help_text="e.g. 8.0")
    memory_bandwidth_gb_per_second = _figure("Memory bandwidth", "GB/s")
    bf16_tflops = _figure("bf16, dense", "TFLOPS")
    fp8_tflops = _figure("fp8, dense", "TFLOPS")
    fp4_tflops = _figure("fp4, dense", "TFLOPS")
    nvlink_gb_per_second = _figure("NVLink", "GB/s", help_text="Both directions together")
    pcie = forms.CharField(label="PCIe", max_length=20, required=False, help_text="e.g. 4.0 x16")
    aliases = forms.CharField(
        label="Names nvidia-smi prints", required=False, help_text="Several: part them with a vertical bar |"
    )
    source = forms.CharField(max_length=1000, required=False, help_text="An address, or who measured it")
    confidence = forms.ChoiceField(choices=Confidence.choices, required=False, initial=Confidence.MEDIUM)
    note = forms.CharField(max_length=500, required=False)

    def clean_aliases(self) -> list[str]:
        """The names as a list."""
        return [name.strip() for name in self.cleaned_data["aliases"].split("|") if name.strip()]

    def clean(self) -> dict[str, Any]:
        """Empty ends of the range are the total itself."""
        cleaned = super().clean() or self.cleaned_data
        total = cleaned.get("total_gib")
        for name in ("total_low_gib", "total_high_gib"):
            cleaned[name] = cleaned.get(name) or total
        if total and not cleaned["total_low_gib"] <= total <= cleaned["total_high_gib"]:
            self.add_error("total_gib", "It must lie between the lowest and the highest seen.")
        return cleaned

    @property
    def row(self) -> dict[str, Any]:
        """The row's columns: bytes, bytes a second, operations a second."""
        given = self.cleaned_data
        same = ("name", "compute_capability", "pcie", "aliases", "source", "note")
        return {
            **{name: given[name] for name in same},
            **{f"{name}_bytes": bytes_from_gib(given[f"{name}_gib"]) for name in ("total", "total_low", "total_high")},
            **{f"{name}_flops": _optional(flops_from_tera, given[f"{name}_tflops"]) for name in ("bf16", "fp8", "fp4")},
            **{
                f"{name}_bytes_per_second": _optional(rate_from_gb_per_second, given[f"{name}_gb_per_second"])
                for name in ("memory_bandwidth", "nvlink")
            },
            "confidence": given["confidence"] or Confidence.MEDIUM,
        }


def _optional(convert: Any, figure: float | None) -> float | int | None:
    return None if figure is None else convert(figure)


class HostForm(PlannerForm):
    """A machine by hand, or one line of a CSV file."""

    name = forms.CharField(max_length=100, help_text="As your team calls it, e.g. gpu-01")
    gpu_type = forms.CharField(max_length=100, help_text="A slug of the list, or the name nvidia-smi prints")
    gpu_count = forms.IntegerField(label="GPUs", min_value=1, max_value=MOST_GPUS_PER_HOST, initial=1)
    note = forms.CharField(max_length=500, required=False)


class CsvForm(PlannerForm):
    """Many rows at once: a file, or its text pasted."""

    file = forms.FileField(label="CSV file", required=False)
    text = forms.CharField(
        label="or paste it",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
    )

    def clean_file(self) -> str:
        """The file's text; UTF-8, with or without a byte order mark."""
        upload = self.cleaned_data["file"]
        if upload and upload.size > LARGEST_UPLOAD_BYTES:
            raise forms.ValidationError(
                "This file has megabytes. Split it; a sheet of a thousand rows has a few hundred kB."
            )
        try:
            return upload.read().decode("utf-8-sig") if upload else ""
        except UnicodeDecodeError as fault:
            raise forms.ValidationError("This is not UTF-8 text. Export the sheet as CSV UTF-8.") from fault

    def clean(self) -> dict[str, Any]:
        """One of both."""
        cleaned = super().clean() or self.cleaned_data
        cleaned["table"] = cleaned.get("file") or cleaned.get("text") or ""
        if not cleaned["table"].strip() and not self.errors:
            self.add_error("file", "Choose a file, or paste its text below.")
        return cleaned


class ModelFromHubForm(PlannerForm):
    """A model by its Hugging Face id."""

    repo_id = forms.RegexField(
        r"^[\w.-]+/[\w.-]+$",
        label="Hugging Face id",
        error_messages={"invalid": "Write it as ORGANISATION/NAME, e.g. Qwen/Qwen3-8B."},
    )
    token = forms.CharField(
        label="Access token",
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="For gated models; used for this one request and never kept",
    )


class ModelFromFileForm(PlannerForm):
    """A model by its config.json."""

    name = forms.CharField(max_length=200, help_text="e.g. our-team/llama-70b-finetune")
    file = forms.FileField(label="config.json", required=False)
    text = forms.CharField(
        label="or paste it", required=False, widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"})
    )

    def clean(self) -> dict[str, Any]:
        """The configuration as a mapping, from the file or the text."""
        cleaned = super().clean() or self.cleaned_data
        field = "file" if cleaned.get("file") else "text"
        try:
            cleaned["config"] = _config(self._content(field), field)
        except BadInput as fault:
            self.refuse(fault)
        return cleaned

    def _content(self, field: str) -> bytes:
        if field == "text":
            return self.cleaned_data.get("text", "").encode()
        upload = self.cleaned_data["file"]
        if upload.size > LARGEST_UPLOAD_BYTES:
            message = "it has megabytes; a config.json has a few kilobytes."
            raise BadInput(field=field, message=message, fix="choose the config.json itself")
        return upload.read()


def _config(content: bytes, field: str) -> dict[str, Any]:
    if not content.strip():
        raise BadInput(field=field, message="nothing was given.", fix="choose the file, or paste its text")
    config = read_json(content, field=field, parse_float=float_or_text)
    if not isinstance(config, dict):
        raise BadInput(field=field, message="it is not a JSON object.", fix="give the text from { to }")
    return config


SHAPES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
}


class ModelByHandForm(PlannerForm):
    """A model by the figures of its card; the names are those of config.json."""

    name = forms.CharField(max_length=200, help_text="e.g. our-team/7b-draft")
    architecture = forms.ChoiceField(choices=[(name, name) for name in SHAPES])
    num_hidden_layers = _whole("num_hidden_layers")
    hidden_size = _whole("hidden_size")
    intermediate_size = _whole("intermediate_size")
    num_attention_heads = _whole("num_attention_heads")
    num_key_value_heads = _whole("num_key_value_heads", required=False, help_text="Empty: as many as attention heads")
    head_dim = _whole("head_dim", required=False, help_text="Empty: hidden_size ÷ num_attention_heads")
    vocab_size = _whole("vocab_size")
    max_position_embeddings = _whole("max_position_embeddings")
    torch_dtype = forms.ChoiceField(
        label="torch_dtype", choices=[(name, name) for name in ("bfloat16", "float16", "float32")]
    )
    tie_word_embeddings = forms.BooleanField(label="tie_word_embeddings", required=False)

    def clean(self) -> dict[str, Any]:
        """The config.json that says the same; an empty field is left out, as a checkpoint would."""
        cleaned = super().clean() or self.cleaned_data
        architecture = cleaned.get("architecture", "")
        stated = {k: v for k, v in cleaned.items() if k not in {"name", "architecture"} and v is not None}
        cleaned["config"] = {"architectures": [architecture], "model_type": SHAPES.get(architecture, ""), **stated}
        return cleaned


class TokenForm(PlannerForm):
    """An API token to be made."""

    name = forms.CharField(max_length=100, help_text="What will use it, e.g. nightly CI")
    days = forms.TypedChoiceField(
        label="Expires after",
        coerce=int,
        choices=[(7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "1 year")],
        initial=90,
    )


class NewPasswordForm(PasswordChangeForm):
    """A new password; the page does not jump to it, and says the rules in one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["old_password"].widget.attrs.pop("autofocus", None)
        self.fields["new_password1"].help_text = "At least 8 characters, not only digits, no common password"
        self.fields["new_password2"].help_text = ""
