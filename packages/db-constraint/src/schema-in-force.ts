import type { ConstraintContext } from "./constraint-context.ts";
import type { DescriptorInForce } from "./shadow-index.ts";

/** Whose schema of references is in force. Only a server whose own schema is in force can write. */
export type SchemaInForce =
	| { readonly kind: "own" }
	| {
			readonly kind: "other";
			/** Identifies the schema in force, and this server's own. */
			readonly fingerprint: string;
			readonly ownFingerprint: string;
	  };

/**
 * Calls the listener whenever the schema in force becomes another one than the server's own, or its own
 * again, as soon as the index has followed the storage to there. Returns how to stop that.
 */
export function followSchema(
	{ index, descriptor }: Pick<ConstraintContext, "index" | "descriptor">,
	listener: (schema: SchemaInForce) => void,
): () => void {
	const ownFingerprint = descriptor.fingerprint;
	let last = ownFingerprint;
	const onDescriptor = ({ fingerprint }: DescriptorInForce) => {
		if (fingerprint !== last) {
			last = fingerprint;
			listener(
				fingerprint === ownFingerprint
					? { kind: "own" }
					: { kind: "other", fingerprint, ownFingerprint },
			);
		}
	};
	if (index.descriptor !== undefined) {
		onDescriptor(index.descriptor);
	}
	return index.onDescriptor(onDescriptor);
}
