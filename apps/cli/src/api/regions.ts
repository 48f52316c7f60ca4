import { Code, ConnectError } from "@connectrpc/connect";
import type { KnownType } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { labelProblem, type TenancyLike, tenancyOf, typeOf } from "@plinth/resource";
import { exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import type { ServerSession } from "./server-session.ts";

/** The value of `--region` for all regions. */
export const allRegions = "*";

/** Checks the value of `--region`. @throws Failure if it is no region. */
export function checkRegion(region: string | undefined): void {
	if (region === undefined || region === allRegions) {
		return;
	}
	const problem = labelProblem(region);
	if (problem !== undefined) {
		throw usageFailure(`--region ${JSON.stringify(region)} ${problem}, or be "*" for all regions`);
	}
}

/** Like `checkRegion`, for commands that read single resources. @throws Failure also for all regions. */
export function checkOneRegion(region: string | undefined): void {
	checkRegion(region);
	if (region === allRegions) {
		throw usageFailure("name one region: this command reads one resource for each name");
	}
}

/**
 * Checks that the server has returned resources of the region that they were requested of. A server of an earlier release
 * ignores the region.
 *
 * @throws Failure if it has.
 */
export async function assertOfRegion(
	session: ServerSession,
	type: KnownType,
	region: string | undefined,
	resources: readonly Resource[],
): Promise<void> {
	const isOther = ({ id }: Resource) => id?.region !== region;
	if (region === undefined || region === allRegions || !resources.some(isOther)) {
		return;
	}
	// The resources of the server's own region have no region.
	const areLocal = resources.every(({ id }) => !id?.region);
	const tenancy = resources[0]?.id?.tenancy;
	if (!(areLocal && (await knowsRegions(session, type, tenancy)))) {
		const { server } = session.settings.endpoint;
		throw new Failure(
			exitCodes.failed,
			`${server} is of a release that does not know regions, and has ignored --region ${region}: upgrade it, or ask a server of ${region}`,
		);
	}
}

/** Whether the server reads the region of a list: it refuses one whose name no region can have. */
async function knowsRegions(
	session: ServerSession,
	type: KnownType,
	tenancy: TenancyLike | undefined,
): Promise<boolean> {
	try {
		await session.connection.resources.list(
			{ type: typeOf(type.type), tenancy: tenancyOf(tenancy), region: "-", pageSize: 1 },
			{ signal: session.io.signal },
		);
		return false;
	} catch (error) {
		if (error instanceof ConnectError && error.code === Code.InvalidArgument) {
			return error.rawMessage.startsWith("region ");
		}
		return session.call(Promise.reject(error));
	}
}
