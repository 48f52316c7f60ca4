/** The fields of a document, in the order in which they are shown. */
export const documentFields = [
	...["type", "name", "partition", "namespace", "uid", "owner", "owner_references"],
	...["generation", "version", "metadata", "data", "status"],
] as const;

/** Those that name a resource, or its owner. */
export const namingFields = ["type", "name", "partition", "namespace", "uid"] as const;
