import type { JsonValue } from "@bufbuild/protobuf";
import { stringify } from "yaml";

/** Documents as YAML. Import this file only where YAML is printed: its parser takes a while to load. */
export function toYaml(...documents: readonly JsonValue[]): string {
	return documents.map((document) => stringify(document, { lineWidth: 0 })).join("---\n");
}
