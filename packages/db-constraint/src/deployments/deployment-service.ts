import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	type ListDeploymentsResponse_Deployment as Deployment,
	ListDeploymentsResponse_DeploymentSchema as DeploymentSchema,
	type DeploymentService,
	ListDeploymentsResponseSchema,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { countReferences, type ReferenceCounts } from "./count-references.ts";

/** Options of the service. */
export interface DeploymentServiceOptions {
	/** Since when the registry may be out of date; `undefined` if it is up to date. */
	readonly outdatedSince: () => Date | undefined;
}

/** The service that tells operators about deployments. It authorizes nobody: its registration does. */
export function createDeploymentService(
	context: ConstraintContext,
	{ outdatedSince }: DeploymentServiceOptions,
): ServiceImpl<typeof DeploymentService> {
	return {
		async listDeployments(_request, { signal }) {
			const counts = await countReferences(context, signal);
			const since = outdatedSince();
			return create(ListDeploymentsResponseSchema, {
				deployments: deploymentsOf(context, counts),
				...(since && { outdatedSince: timestampFromDate(since) }),
			});
		},
	};
}

function deploymentsOf(
	{ environment }: ConstraintContext,
	counts: ReadonlyMap<string, ReferenceCounts>,
): Deployment[] {
	const registered = environment.deployments();
	const known = new Set(registered.map(({ uid }) => uid));
	const others = [...counts].filter(([uid]) => !known.has(uid));
	return [
		...registered.map((info) => deploymentOf(info, counts.get(info.uid), environment.self.uid)),
		...others.map(([uid, count]) =>
			create(DeploymentSchema, { uid, ...count, ...numbersOf(count) }),
		),
	].toSorted(compareDeployments);
}

function deploymentOf(
	info: DeploymentInfo,
	counts: ReferenceCounts | undefined,
	selfUid: string,
): Deployment {
	const { uid, name, service, region, version, disabled, predecessorUid, established } = info;
	return create(DeploymentSchema, {
		...{ uid, name, service, region, version, predecessorUid },
		isSelf: uid === selfUid,
		isRegistered: true,
		isDisabled: disabled,
		isTakingOver: established === false,
		...(counts && numbersOf(counts)),
	});
}

function numbersOf({ references, missing }: ReferenceCounts) {
	return { references: BigInt(references), missing: BigInt(missing) };
}

function compareDeployments(a: Deployment, b: Deployment): number {
	return (
		Number(b.isRegistered) - Number(a.isRegistered) ||
		compareTexts(a.service, b.service) ||
		compareTexts(a.region, b.region) ||
		compareTexts(a.name, b.name) ||
		compareTexts(a.uid, b.uid)
	);
}

function compareTexts(a: string, b: string): number {
	return a < b ? -1 : Number(a > b);
}
