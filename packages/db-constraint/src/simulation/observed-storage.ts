import type { StorageBackend } from "@plinth/storage";
import type { Deployment } from "./deployment.ts";
import type { Observer } from "./observer.ts";

/** A storage whose every commit that changes something is seen by the observer. */
export function observed(
	backend: StorageBackend,
	deployment: Deployment,
	observer: Observer,
): StorageBackend {
	return {
		...backend,
		async commit(mutations, options) {
			const commit = await backend.commit(mutations, options);
			if (!options?.dryRun && commit.version !== "") {
				observer.saw(deployment, mutations, commit);
			}
			return commit;
		},
	};
}
