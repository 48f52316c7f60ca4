import type { ID, Resource } from "@plinth/proto";
import type { StorageBackend } from "../backend.ts";
import { decorateBackend } from "../decorate-backend.ts";

/** One change of the stored resources. */
export type StoredChange =
	| { readonly kind: "put"; readonly version: string; readonly resource: Resource }
	| { readonly kind: "delete"; readonly version: string; readonly id: ID };

/**
 * A storage that reports each change, in the order of commits, before the caller of the commit learns of
 * it. It must be the innermost of several decorators, directly around a storage that commits in one
 * step, as the in-memory one does.
 */
export function recordedBackend(
	backend: StorageBackend,
	onChange: (change: StoredChange) => void,
): StorageBackend {
	return decorateBackend(backend, {
		async commit(mutations, options) {
			let decided = mutations;
			const { rebase } = options ?? {};
			const commit = await backend.commit(mutations, {
				...options,
				...(rebase && {
					rebase: (stored) => {
						const rebased = rebase(stored);
						decided = rebased ?? decided;
						return rebased;
					},
				}),
			});
			const { version } = commit;
			if (options?.dryRun || version === "") {
				return commit;
			}
			for (const [at, mutation] of decided.entries()) {
				const resource = commit.resources[at];
				if (mutation.op === "put" && resource !== undefined) {
					onChange({ kind: "put", version, resource });
				} else if (mutation.op === "delete") {
					onChange({ kind: "delete", version, id: mutation.id });
				}
			}
			return commit;
		},
	});
}
