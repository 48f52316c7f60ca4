import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
	Code,
	ConnectError,
	createClient,
	type HandlerContext,
	type ServiceImpl,
} from "@connectrpc/connect";
import { ControllerService, type ID, type Resource } from "@plinth/proto";
import {
	type GetControllerResponse,
	GetControllerResponseSchema,
	GetDependencyGraphResponseSchema,
	type ListControllersResponse,
	ListControllersResponseSchema,
	type ListReconcilesResponse,
	ListReconcilesResponseSchema,
	type ReportControllersRequest,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type { Clock } from "@plinth/runtime";
import {
	AgentReports,
	reportIntervalMs,
	reportsOn,
	withoutKeys,
} from "../cluster/agent-reports.ts";
import { checkReport } from "../cluster/check-report.ts";
import type { ReportingCluster, ReportQuestion, ServerReport } from "../cluster/cluster.ts";
import { mergeDetails, mergeListings, mergeReconciles } from "../cluster/merge-responses.ts";
import type { PooledKey } from "../queue/worker-pool.ts";
import { controllerMessage, maxKeys, reconcileInit, stateInit } from "./controller-messages.ts";
import { toMermaid } from "./dependency-graph.ts";
import type { ControllerManager } from "./manager.ts";

/** The reports of a manager. */
export type ControllerReports = Pick<
	ControllerManager,
	"state" | "graph" | "work" | "reconcilesOf"
>;

/** Options of the service. */
export interface ControllerServiceOptions {
	/** Reads a resource with the rights of the caller. @throws ConnectError if the caller may not, or there is none. */
	readonly read: (id: ID | undefined, call: HandlerContext) => Promise<Resource>;
	/** The cluster of which all servers report. Without it, reports are those of the manager alone, and name no server. */
	readonly cluster?: ReportingCluster;
	/** Accepts reports of agents. Without it, there are none. */
	readonly agents?: AgentReporting;
}

/** How reports of agents are accepted. */
export interface AgentReporting {
	readonly clock: Pick<Clock, "monotonic">;
	/** Checks that the caller may report on controllers of these names. @throws ConnectError PermissionDenied. */
	readonly authorize: (call: HandlerContext, controllers: readonly string[]) => Promise<void>;
}

/** Serves the reports of a manager, of those of other servers, and of agents, as a Connect service. */
export function createControllerService(
	manager: ControllerReports,
	{ read, cluster, agents }: ControllerServiceOptions,
): ServiceImpl<typeof ControllerService> {
	const ofAgents = agents && new AgentReports(agents.clock);
	const own = new OwnReports(manager, () => cluster?.own.name, ofAgents);
	/** The own response with those of the other servers, in the order of their names. */
	const reports = async <T>(
		response: T | undefined,
		{ thisServerOnly }: { readonly thisServerOnly: boolean },
		call: HandlerContext,
		question: ReportQuestion<T>,
	): Promise<readonly ServerReport<T>[]> => {
		if (cluster === undefined) {
			return [{ server: undefined, response }];
		}
		const report = { server: cluster.own, response };
		return thisServerOnly
			? [report]
			: [report, ...(await cluster.askOthers(call, question))].sort(byServer);
	};
	return {
		async listControllers(request, call) {
			const response = own.list();
			const all = await reports(response, request, call, (transport, options) =>
				createClient(ControllerService, transport).listControllers(
					{ thisServerOnly: true },
					options,
				),
			);
			return mergeListings(all, request.thisServerOnly ? "apart" : "merged");
		},
		async getController(request, call) {
			const { name } = request;
			const all = await reports(own.get(name), request, call, (transport, options) =>
				createClient(ControllerService, transport)
					.getController({ name, thisServerOnly: true }, options)
					.catch(undefinedIfNotFound),
			);
			const response = mergeDetails(all, request.thisServerOnly ? "apart" : "merged");
			if (response === undefined) {
				throw new ConnectError(notFound(name, all), Code.NotFound);
			}
			return response;
		},
		async listReconciles(request, call) {
			// The one that is stored: the request may leave out the tenancy.
			const { id } = await read(request.id, call);
			return mergeReconciles(
				await reports(own.reconciles(id), request, call, (transport, options) =>
					createClient(ControllerService, transport)
						.listReconciles({ ...(id && { id }), thisServerOnly: true }, options)
						// It may have learned of a deletion before this server.
						.catch(undefinedIfNotFound),
				),
			);
		},
		async reportControllers(request, call) {
			if (agents === undefined || ofAgents === undefined) {
				throw new ConnectError("this server accepts no reports", Code.Unimplemented);
			}
			await acceptReport(request, call, manager, agents.authorize, ofAgents);
			return { interval: durationFromMs(reportIntervalMs) };
		},
		getDependencyGraph() {
			const graph = manager.graph();
			return create(GetDependencyGraphResponseSchema, {
				types: [...graph.types],
				dependencies: [...graph.dependencies],
				cycles: graph.cycles.map((types) => ({ types: [...types] })),
				mermaid: toMermaid(graph),
			});
		},
	};
}

/** Accepts the report of an agent. @throws ConnectError */
async function acceptReport(
	request: ReportControllersRequest,
	call: HandlerContext,
	manager: Pick<ControllerReports, "state">,
	authorize: AgentReporting["authorize"],
	reports: AgentReports,
): Promise<void> {
	checkReport(request);
	const names = request.controllers.map(({ controller }) => controller?.name ?? "");
	await authorize(call, names);
	const both = manager.state().controllers.find(({ name }) => names.includes(name));
	if (both !== undefined) {
		throw new ConnectError(
			`the servers run a controller ${both.name} themselves: load its module either at servers or at agents`,
			Code.FailedPrecondition,
		);
	}
	reports.accept(request);
}

/** The reports of this server, without the servers that were asked, and with those that agents have sent to it. */
class OwnReports {
	readonly #manager: ControllerReports;
	readonly #server: () => string | undefined;
	readonly #agents: AgentReports | undefined;

	/** @param server - the name of this server, if it has one. */
	constructor(
		manager: ControllerReports,
		server: () => string | undefined,
		agents: AgentReports | undefined,
	) {
		this.#manager = manager;
		this.#server = server;
		this.#agents = agents;
	}

	list(): ListControllersResponse {
		const { controllers, holdsLease } = this.#manager.state();
		return create(ListControllersResponseSchema, {
			controllers: controllers.map((each) => controllerMessage(each, this.#server())),
			agents: [...withoutKeys(this.#agents?.list() ?? [])],
			...(holdsLease !== undefined && { holdsLease }),
		});
	}

	/** `undefined` if there is no controller of this name. */
	get(name: string): GetControllerResponse | undefined {
		const state = this.#manager.state().controllers.find((each) => each.name === name);
		const work = this.#manager.work(name, maxKeys);
		const agents = [...reportsOn(name, this.#agents?.list() ?? [])];
		if (state === undefined || work === undefined) {
			return agents.length === 0 ? undefined : create(GetControllerResponseSchema, { agents });
		}
		const shown = (keys: readonly PooledKey[]) =>
			keys.map((key) => reconcileInit(name, key, this.#server()));
		return create(GetControllerResponseSchema, {
			controller: controllerMessage(state, this.#server()),
			agents,
			failing: shown(work.failing),
			running: shown(work.running),
		});
	}

	reconciles(id: ID | undefined): ListReconcilesResponse {
		const states = id === undefined ? [] : this.#manager.reconcilesOf(id);
		return create(ListReconcilesResponseSchema, {
			reconciles: states.map((state) => stateInit(state, this.#server())),
		});
	}
}

/**
 * In an order that does not depend on which server is called. In a container, a server has the name and the address of its
 * predecessor, whose record stays for a while if it was killed.
 */
function byServer({ server: a }: ServerReport<unknown>, { server: b }: ServerReport<unknown>) {
	const [one, other] = [a, b].map((server) =>
		[server?.name, server?.address, server?.startedAtMs].join("\0"),
	);
	return one === other ? 0 : (one ?? "") < (other ?? "") ? -1 : 1;
}

function undefinedIfNotFound(error: unknown): undefined {
	if (error instanceof ConnectError && error.code === Code.NotFound) {
		return undefined;
	}
	throw error;
}

function notFound(name: string, reports: readonly ServerReport<unknown>[]): string {
	const missing = reports.flatMap(({ server, missing }) =>
		missing === undefined ? [] : [`${server?.name} ${missing}`],
	);
	const message = `there is no controller ${JSON.stringify(name)}`;
	return missing.length === 0
		? message
		: `${message} on the servers that have responded; ${missing.join(", ")}`;
}
