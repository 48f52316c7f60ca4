/** The fields of a document, in output order. */
export const documentFields = [
	...["type", "name", "partition", "namespace", "region", "uid", "owner", "owner_references"],
	...["generation", "version", "metadata", "data", "status"],
] as const;

/** The fields that identify a resource or its owner. */
export const namingFields = ["type", "name", "partition", "namespace", "uid"] as const;
