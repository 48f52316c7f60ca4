export { type ReadOptions, readDocument } from "./read-document.ts";
export { parseDocuments, type SourceDocument } from "./source-document.ts";
export { toYaml } from "./to-yaml.ts";
export { locate, positionOf, type WantedResource } from "./wanted-resource.ts";
