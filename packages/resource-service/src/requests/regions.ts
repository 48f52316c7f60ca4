import { Code, ConnectError } from "@connectrpc/connect";
import type { ID } from "@plinth/proto";
import { displayName, labelProblem } from "@plinth/resource";
import { wildcard } from "@plinth/storage";
import { malformedValue } from "../errors/refusal.ts";

/**
 * The region in a request as it is stored: absent for what is no copy of another region.
 *
 * @param own - the region of this service, if it has one.
 * @param path - the field of the request.
 * @throws ConnectError InvalidArgument if it is malformed.
 */
export function storedRegion(
	own: string | undefined,
	region: string | undefined,
	path: string,
): string | undefined {
	if (!region || region === own) {
		return undefined;
	}
	const problem = labelProblem(region);
	if (problem !== undefined) {
		throw malformedValue(path, problem, region);
	}
	return region;
}

/** The region of a list or a watch: like that of an ID, or `*` for everything. @throws ConnectError InvalidArgument. */
export function queryRegion(
	own: string | undefined,
	region: string,
): { readonly region?: string | undefined } {
	const stored = region === wildcard ? wildcard : storedRegion(own, region, "region");
	return stored === undefined ? {} : { region: stored };
}

/** Copies of other regions are read-only. @throws ConnectError FailedPrecondition if the ID names one. */
export function refuseRegion(id: ID): void {
	if (id.region !== undefined) {
		throw new ConnectError(
			`${displayName(id)} is read-only here: write it in its region, ${id.region}`,
			Code.FailedPrecondition,
		);
	}
}
