import { hasNamespace } from "@plinth/resource";
import { isMap, stringify } from "yaml";
import type { KnownType, KnownTypes } from "./known-types.ts";
import type { SourceDocument } from "./source-document.ts";

/** The most lines of a manifest's `spec` that are shown as data. */
const maxDataLines = 20;

/**
 * Explains that a document is a manifest of Kubernetes, and shows the resource in the form of Plinth; `undefined` if it
 * is not one.
 */
export function explainManifest(source: SourceDocument, types: KnownTypes): string | undefined {
	const { root } = source;
	if (!isMap(root) || !root.has("apiVersion") || !root.has("kind")) {
		return undefined;
	}
	const { apiVersion, kind, metadata, spec, items } = fieldsOf(source.value());
	if (Array.isArray(items)) {
		return "this is a list of manifests of Kubernetes; here, each resource is a document, or an entry of a list, with type, name, metadata and data";
	}
	const { name, namespace, labels } = fieldsOf(metadata);
	const type = knownType(String(kind), types);
	const isNamespaced = type === undefined || hasNamespace(type.scope);
	const resource = {
		type: type?.key ?? typeName(String(apiVersion), String(kind)),
		name: name ?? "…",
		...(namespace !== undefined && isNamespaced && { namespace }),
		...(labels !== undefined && { metadata: labels }),
		...(spec !== undefined && { data: spec }),
	};
	const note =
		type === undefined
			? "\n(the server has no type of this kind: plinth types lists those that it has)"
			: "";
	return `this is a manifest of Kubernetes, with apiVersion, kind and metadata.name; the form of a resource here is\n\n${indented(shown(resource))}\n${note}`.trimEnd();
}

function shown(resource: { readonly data?: unknown }): string {
	const text = stringify(resource).trimEnd();
	return text.split("\n").length <= maxDataLines
		? text
		: `${stringify({ ...resource, data: undefined }).trimEnd()}\ndata:\n  # the fields of spec`;
}

function knownType(kind: string, types: KnownTypes): KnownType | undefined {
	return types.all.find(({ type }) => type.kind === kind);
}

/** `apps/v1` and `Deployment` as `apps.v1.Deployment`. */
function typeName(apiVersion: string, kind: string): string {
	const [group = "", version] = apiVersion.split("/");
	return version === undefined ? kind : `${group.split(".")[0]}.${version}.${kind}`;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null ? { ...value } : {};
}

function indented(text: string): string {
	return text.replaceAll(/^/gm, "  ");
}
