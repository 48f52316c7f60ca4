import type { CopyPolicy } from "@plinth/proto/gen/plinth/meta/v1/copy_policy_pb.js";
import { labelProblem } from "./names.ts";

/** The regions that one policy may name. */
const maxRegions = 64;

/**
 * Checks the policy of a partition or a namespace: which regions hold copies of what is there.
 *
 * @throws Error that names the region.
 */
export function checkCopyPolicy(policy: CopyPolicy | undefined): void {
	const { regions = [] } = policy ?? {};
	if (regions.length > maxRegions) {
		throw new Error(`copies.regions has ${regions.length} entries, more than ${maxRegions}`);
	}
	const named = new Set<string>();
	for (const [at, region] of regions.entries()) {
		const problem = labelProblem(region);
		if (problem !== undefined) {
			const shown = JSON.stringify(region.slice(0, 100));
			throw new Error(`copies.regions[${at}] invalid: ${problem}, got: ${shown}`);
		}
		if (named.has(region)) {
			throw new Error(`copies.regions[${at}] invalid: ${region} is named twice`);
		}
		named.add(region);
	}
}
