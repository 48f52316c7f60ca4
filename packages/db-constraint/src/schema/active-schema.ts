import type { ConstraintContext } from "../node/constraint-context.ts";

/** Whether this server's schema of references is active. It can write only then. */
export type ActiveSchema =
	| { readonly kind: "own" }
	| {
			readonly kind: "other";
			/** The fingerprints of the active schema and of this server's own. */
			readonly fingerprint: string;
			readonly ownFingerprint: string;
	  };

/**
 * Calls the listener whenever the active schema changes from the server's own to another one or back, as
 * soon as the index has seen the change. Returns a function that stops it.
 */
export function followActiveSchema(
	{ index, descriptor }: Pick<ConstraintContext, "index" | "descriptor">,
	listener: (schema: ActiveSchema) => void,
): () => void {
	const ownFingerprint = descriptor.fingerprint;
	let last = ownFingerprint;
	return index.onDescriptor(({ fingerprint }) => {
		if (fingerprint !== last) {
			last = fingerprint;
			listener(
				fingerprint === ownFingerprint
					? { kind: "own" }
					: { kind: "other", fingerprint, ownFingerprint },
			);
		}
	});
}
