"""spec.model, spec.architecture and spec.plugins: what is served, and the code that knows how."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from bowsprit.api.base import (
    ATOMIC,
    IMAGE,
    OPEN_OBJECT,
    SET,
    ApiModel,
    ImageReference,
    ObjectName,
    class_rules,
    example,
    matches,
    quoted,
    rule,
    rules,
)

_STREAMED = "'^(s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]{1,253}(/[A-Za-z0-9._=+@-]+)*/?$'"

URI_RULES = rules(
    rule("self.matches('^[a-z0-9]+://')", "must begin with hf://, pvc://, oci://, s3://, gs:// or az://"),
    rule(
        "!self.matches('^[a-z0-9]+://') || self.matches('^(hf|pvc|s3|gs|az|oci)://')",
        "unknown scheme: write hf://org/name, pvc://claim/path, oci://image, s3://bucket/path, gs://bucket/path or "
        "az://container/path",
    ),
    rule(
        "!self.startsWith('hf://') || "
        "self.matches('^hf://[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$')",
        "hf:// needs an organisation and a name and nothing more, as in hf://meta-llama/Llama-3.1-70B; a branch, "
        "tag or commit goes into spec.model.revision",
    ),
    rule(
        "!self.startsWith('pvc://') || "
        "self.matches('^pvc://[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?(/[A-Za-z0-9._=+@-]+)+/?$')",
        "pvc:// needs the name of a PersistentVolumeClaim (lower-case letters, digits, '-') and a path in it, as "
        "in pvc://models/llama-3.1-70b",
    ),
    rule(
        f"!self.startsWith('oci://') || self.matches({quoted(f'^oci://{IMAGE}$')})",
        "oci:// needs an image, as in oci://registry.example.com/models/llama:8b; its folder /models holds the model",
    ),
    rule(r"!self.matches('/[.][.]?(/|$)')", "the path must not contain . or .. as a folder"),
    rule(
        f"!self.matches('^(s3|gs|az)://') || self.matches({_STREAMED})",
        "object storage needs a bucket or container and may have a path, as in s3://models/llama-3.1-70b",
    ),
)


class SecretKeyRef(ApiModel):
    name: Annotated[
        ObjectName, Field(description="Name of the Secret, in this namespace."), example("hf-token")
    ]
    key: Annotated[
        str,
        Field(min_length=1, max_length=253, description="Key within the Secret."),
        matches("^[-._a-zA-Z0-9]+$", "must be a key of a Secret: letters, digits, '-', '_' and '.'"),
        example("token"),
    ]


class LocalObjectRef(ApiModel):
    name: Annotated[
        ObjectName, Field(description="Name of the object, in this namespace."), example("llama-config")
    ]


class ModelConfigSource(ApiModel):
    """A ConfigMap with the key config.json, and optionally model.safetensors.index.json."""

    config_map_ref: Annotated[
        LocalObjectRef,
        Field(
            description="ConfigMap with the key config.json and, for exact weight sizes, "
            "model.safetensors.index.json, both as the model's repository has them."
        ),
    ]


class Model(ApiModel):
    """What is served, and where its weights are."""

    model_config = class_rules(
        rule(
            "!has(self.revision) || self.uri.startsWith('hf://')",
            "revision is for hf:// only: delete it, or name the version in the path of spec.model.uri",
            ".revision",
        ),
        rule(
            "!has(self.tokenSecretRef) || self.uri.startsWith('hf://')",
            "tokenSecretRef is a Hugging Face token, for hf:// only: delete it (credentials for object storage "
            "go into spec.engine.env by secretKeyRef)",
            ".tokenSecretRef",
        ),
    )

    uri: Annotated[
        str,
        Field(
            min_length=6,
            max_length=1024,
            description="Where the weights are: hf://org/name, pvc://claim/path, oci://image (its folder /models, copied "
            "into each pod), or s3://, gs://, az:// through vLLM's own streamer.",
        ),
        URI_RULES,
        example("hf://meta-llama/Llama-3.1-70B-Instruct"),
    ]
    revision: Annotated[
        str | None,
        Field(
            default=None, max_length=128, description="Branch, tag or commit of the repository (hf:// only)."
        ),
        matches(
            "^[A-Za-z0-9][A-Za-z0-9._/-]*$",
            "must be a branch, tag or commit: letters, digits, '.', '_', '/' and '-'",
        ),
        example("1605565b47bb9346c5515c34102e054115b4f98b"),
    ]
    name: Annotated[
        str | None,
        Field(
            default=None,
            min_length=1,
            max_length=256,
            description="Served model name: what clients write as `model`. metadata.name when absent.",
        ),
        matches(
            "^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$",
            "must begin with a letter or digit and hold only letters, digits and . _ : / @ + -",
        ),
        example("llama-3.1-70b"),
    ]
    token_secret_ref: Annotated[
        SecretKeyRef | None,
        Field(
            default=None,
            description="Hugging Face token; handed to the pods by reference, never read by Bowsprit.",
        ),
    ]
    config: Annotated[
        ModelConfigSource | None,
        Field(
            default=None,
            description="The model's config.json, for planning where preflight has not read it: with preflight: Skip, and "
            "with `bowsprit plan -f`.",
        ),
    ]


class Architecture(ApiModel):
    """Which model class loads the checkpoint, and changes to its config.json."""

    model_config = class_rules(
        rule(
            "!has(self.override) || !has(self.hfOverrides) || !has(self.hfOverrides.architectures) || "
            "self.hfOverrides.architectures == [self.override]",
            "override and hfOverrides.architectures name different classes: keep override and delete "
            "hfOverrides.architectures",
            ".override",
        ),
    )

    override: Annotated[
        str | None,
        Field(
            default=None,
            min_length=1,
            max_length=128,
            description="Architecture class to load instead of the one that the checkpoint names: a class of vLLM "
            "or of a plugin.",
        ),
        matches("^[A-Za-z_][A-Za-z0-9_]*$", "must be the name of a class: letters, digits and '_'"),
        example("MyOptForCausalLM"),
    ]
    uneven_tensor_parallel: Annotated[
        bool | None,
        Field(
            default=None,
            description="Your word that the class pads what does not divide: the planner may then take any tensor-parallel "
            "size up to 8, and reckons with the padded dimensions.",
        ),
        example("true"),
    ]
    hf_overrides: Annotated[
        dict[str, Any] | None,
        WithJsonSchema(
            {
                **OPEN_OBJECT,
                "properties": {
                    "architectures": {
                        "type": "array",
                        "maxItems": 16,
                        "x-kubernetes-list-type": "atomic",
                        "items": {"type": "string", "maxLength": 128},
                        "description": "Architecture classes, as config.json names them; `override` is the shorter way.",
                    }
                },
            }
        ),
        Field(
            default=None,
            description="Merged into the model's config.json, by vLLM (--hf-overrides) and by the planner alike.",
        ),
        example("{num_key_value_heads: 16}"),
    ]


class Plugin(ApiModel):
    """A Python package that teaches vLLM an architecture: an image that holds its wheels, or a pip requirement."""

    model_config = class_rules(
        rule(
            "has(self.image) != has(self.requirement)",
            "a plugin is either an image or a requirement: set exactly one of image and requirement",
        ),
        rule(
            "!has(self.path) || has(self.image)",
            "path is a folder in image: set image, or delete path",
            ".path",
        ),
        rule(
            "!has(self.indexURL) || has(self.requirement)",
            "indexURL says where requirement is found: set requirement, or delete indexURL",
            ".indexURL",
        ),
        rule(
            "!has(self.hashes) || has(self.requirement)",
            "hashes belong to requirement: set requirement, or delete hashes (pin image by @sha256: instead)",
            ".hashes",
        ),
    )

    image: Annotated[
        ImageReference | None,
        Field(default=None, description="Image that holds the plugin's wheels; it needs no shell."),
        example("registry.example.com/team/my-opt-plugin:1.2.3"),
    ]
    path: Annotated[
        str | None,
        Field(default=None, min_length=1, max_length=1024, description="Folder of the wheels in the image."),
        matches("^(/[A-Za-z0-9._@+-]+)+/?$", "must be an absolute path, such as /plugins"),
        example("/plugins"),
    ]
    requirement: Annotated[
        str | None,
        Field(
            default=None,
            min_length=1,
            max_length=1024,
            description="Exact pip requirement, name==version, instead of an image.",
        ),
        matches(
            r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9._,-]+\])?==[A-Za-z0-9][A-Za-z0-9.!+_-]*$",
            "must pin one version, as in my-opt-plugin==1.2.3, with no spaces, ranges or markers",
        ),
        example("my-opt-plugin==1.2.3"),
    ]
    index_url: Annotated[
        str | None,
        Field(
            default=None,
            alias="indexURL",
            max_length=1024,
            description="Package index for `requirement`; pip's own default when absent.",
        ),
        matches(
            "^https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~%+-]*)*$",
            "must be an http:// or https:// address with no user, password or query in it",
        ),
        example("https://packages.example.com/wheels"),
    ]
    hashes: Annotated[
        list[
            Annotated[
                str,
                Field(max_length=71),
                matches("^sha256:[0-9a-f]{64}$", "must be sha256: and 64 lower-case hexadecimal digits"),
            ]
        ]
        | None,
        Field(
            default=None,
            max_length=64,
            description="Digests of the files that may be installed for `requirement`, as pip checks them.",
        ),
        SET,
    ]
    entry_points: Annotated[
        list[
            Annotated[
                str,
                Field(min_length=1, max_length=128),
                matches(
                    "^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
                    "must be the name of an entry point (letters, digits, '_', '.', '-'), not module:function",
                ),
            ]
        ]
        | None,
        Field(
            default=None,
            max_length=32,
            description="Entry points to load, by name: VLLM_PLUGINS then holds exactly these, and hides all others, "
            "those of the engine image too. vLLM loads all that it finds when no plugin names any.",
        ),
        SET,
        example("[my_opt]"),
    ]


_NAMES_ENTRY_POINTS = "has(plugin.entryPoints) && plugin.entryPoints.size() > 0"

Plugins = Annotated[
    list[Plugin] | None,
    Field(default=None, max_length=16, description="Installed in every pod, in this order."),
    ATOMIC,
    rules(
        rule(
            f"self.all(plugin, {_NAMES_ENTRY_POINTS}) || self.all(plugin, !({_NAMES_ENTRY_POINTS}))",
            "name the entryPoints of every plugin or of none: VLLM_PLUGINS holds those that are named, and vLLM "
            "would not load the others",
        )
    ),
]
