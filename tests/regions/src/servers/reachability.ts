import { setTimeout } from "node:timers/promises";
import type { Regions } from "@plinth/example-regions/regions";
import { call } from "../clients/api.ts";
import { serversOf } from "./pairs.ts";

/** How often each deployment is called, in milliseconds. */
const everyMs = 500;

/**
 * Calls each deployment at all of its servers until the signal aborts.
 *
 * @returns the longest time for which none of its servers has responded, in milliseconds, by deployment.
 */
export async function watchReachability(
	regions: Regions,
	deployments: readonly string[],
	signal: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
	const longest: Record<string, number> = {};
	await Promise.all(
		deployments.map(async (deployment) => {
			let respondedMs = performance.now();
			longest[deployment] = 0;
			while (!signal.aborted) {
				const responses = await Promise.all(
					serversOf(regions, deployment).map(({ address }) => isServing(address)),
				);
				const now = performance.now();
				longest[deployment] = Math.max(longest[deployment] ?? 0, Math.round(now - respondedMs));
				if (responses.includes(true)) {
					respondedMs = now;
				}
				await setTimeout(everyMs);
			}
		}),
	);
	return longest;
}

/** Reads a resource that each server has. */
async function isServing(address: string): Promise<boolean> {
	const type = { group: "tenancy", groupVersion: "v1", kind: "Partition" };
	const { kind } = await call(address, "Read", { id: { type, name: "default" } }, 3_000);
	return kind === "done";
}
