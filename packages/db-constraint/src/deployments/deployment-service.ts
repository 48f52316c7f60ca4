import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import {
	type ListDeploymentsResponse_Deployment as Deployment,
	ListDeploymentsResponse_DeploymentSchema as DeploymentSchema,
	type DeploymentService,
	ListDeploymentsResponseSchema,
	type SettleRequest,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import type { Caller } from "@plinth/resource";
import type { StorageBackend } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { DeploymentInfo, Environment } from "../registry/environment.ts";
import { responsibleUid } from "../succession/successors.ts";
import { countReferences, type ReferenceCounts } from "./count-references.ts";
import { listMissing } from "./list-missing.ts";
import { settleReferences } from "./settle-references.ts";
import type { TargetPlace } from "./target-place.ts";

/** Options of the service. */
export interface DeploymentServiceOptions {
	/** Since when the registry may be out of date; `undefined` if it is up to date. */
	readonly outdatedSince: () => Date | undefined;
	/** The storage with its constraints: what is settled is written like everything else. */
	readonly store: StorageBackend;
	/** The caller who is told about resources, and may settle their references; `undefined` for one that may read all. */
	readonly callerOf: (call: HandlerContext) => Promise<Caller | undefined>;
}

/** How many references a request or a page may have. */
const referencesPerCall = 1_000;

/**
 * The service that tells operators about deployments, and settles references. It authorizes nobody to call it: its
 * registration does. Beyond that, callers only see and settle references of resources that they may read.
 */
export function createDeploymentService(
	context: ConstraintContext,
	{ outdatedSince, store, callerOf }: DeploymentServiceOptions,
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
		async listMissing(request, call) {
			const place = placeOf(context, request);
			const { pageSize, pageToken } = request;
			requireAtMost("page_size", pageSize);
			const caller = await callerOf(call);
			const limit = pageSize || referencesPerCall;
			return listMissing(context, place, { after: pageToken, limit, caller, signal: call.signal });
		},
		async settle(request, call) {
			const place = placeOf(context, request);
			const { action, references, dryRun } = request;
			requireAtMost("references", references.length);
			const caller = await callerOf(call);
			const settling = { place, action, dryRun, caller, signal: call.signal };
			return { results: [...(await settleReferences(context, store, references, settling))] };
		},
	};
}

/** @throws ConnectError if there is no such place, or it is another one by now. */
function placeOf(
	{ environment }: ConstraintContext,
	{ deploymentUid, service, region }: Pick<SettleRequest, "deploymentUid" | "service" | "region">,
): TargetPlace {
	if (deploymentUid === "") {
		const found = environment.find(service, region);
		if (found !== undefined && service !== "") {
			const where = `${service} in region "${region}" has a deployment: name it by its uid, ${found.uid}`;
			throw new ConnectError(where, Code.FailedPrecondition);
		}
		if (service === "") {
			throw new ConnectError("deployment_uid or service is required", Code.InvalidArgument);
		}
		return { uid: "", service, region };
	}
	const responsible = environment.byUid(responsibleUid(environment, deploymentUid));
	if (responsible === undefined) {
		throw new ConnectError(`deployment ${deploymentUid} is not registered`, Code.NotFound);
	}
	if (responsible.uid !== deploymentUid) {
		const problem = `deployment ${deploymentUid} was replaced by ${responsible.name}, uid ${responsible.uid}: list the references again`;
		throw new ConnectError(problem, Code.FailedPrecondition);
	}
	return responsible;
}

function requireAtMost(field: string, count: number): void {
	if (count > referencesPerCall) {
		throw new ConnectError(`${field}: at most ${referencesPerCall}`, Code.InvalidArgument);
	}
}

function deploymentsOf(
	{ environment }: ConstraintContext,
	counts: readonly ReferenceCounts[],
): Deployment[] {
	const registered = environment.deployments();
	const known = new Set(registered.map(({ uid }) => uid));
	const byUid = new Map(counts.map((count) => [count.place.uid, count]));
	const others = counts.filter(({ place }) => !known.has(place.uid));
	return [
		...registered.map((info) => deploymentOf(environment, info, byUid.get(info.uid))),
		...others.map((count) => {
			const { uid, service, region } = count.place;
			return create(DeploymentSchema, { uid, service, region, ...numbersOf(count) });
		}),
	].toSorted(compareDeployments);
}

function deploymentOf(
	environment: Environment,
	info: DeploymentInfo,
	counts: ReferenceCounts | undefined,
): Deployment {
	const { uid, name, service, region, version, disabled, predecessorUid, established } = info;
	const responsible = responsibleUid(environment, uid);
	return create(DeploymentSchema, {
		...{ uid, name, service, region, version, predecessorUid },
		isSelf: uid === environment.self.uid,
		successorUid: responsible === uid ? "" : responsible,
		isRegistered: true,
		isDisabled: disabled,
		isTakingOver: established === false,
		...(counts && numbersOf(counts)),
	});
}

function numbersOf({ references, missing, kept }: ReferenceCounts) {
	return { references: BigInt(references), missing: BigInt(missing), kept: BigInt(kept) };
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
