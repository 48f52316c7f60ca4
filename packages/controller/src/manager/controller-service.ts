import { create } from "@bufbuild/protobuf";
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
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
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
}

/** Serves the reports of a manager, and of those of other servers, as a read-only Connect service. */
export function createControllerService(
	manager: ControllerReports,
	{ read, cluster }: ControllerServiceOptions,
): ServiceImpl<typeof ControllerService> {
	const own = new OwnReports(manager, () => cluster?.own.name);
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
			return mergeListings(
				await reports(response, request, call, (transport, options) =>
					createClient(ControllerService, transport).listControllers(
						{ thisServerOnly: true },
						options,
					),
				),
			);
		},
		async getController(request, call) {
			const { name } = request;
			const all = await reports(own.get(name), request, call, (transport, options) =>
				createClient(ControllerService, transport)
					.getController({ name, thisServerOnly: true }, options)
					.catch(undefinedIfNotFound),
			);
			const response = mergeDetails(all);
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

/** The reports of this server, without the servers that were asked. */
class OwnReports {
	readonly #manager: ControllerReports;
	readonly #server: () => string | undefined;

	/** @param server - the name of this server, if it has one. */
	constructor(manager: ControllerReports, server: () => string | undefined) {
		this.#manager = manager;
		this.#server = server;
	}

	list(): ListControllersResponse {
		const { controllers, holdsLease } = this.#manager.state();
		return create(ListControllersResponseSchema, {
			controllers: controllers.map((each) => controllerMessage(each, this.#server())),
			...(holdsLease !== undefined && { holdsLease }),
		});
	}

	/** `undefined` if there is no controller of this name. */
	get(name: string): GetControllerResponse | undefined {
		const state = this.#manager.state().controllers.find((each) => each.name === name);
		const work = this.#manager.work(name, maxKeys);
		if (state === undefined || work === undefined) {
			return undefined;
		}
		const shown = (keys: readonly PooledKey[]) =>
			keys.map((key) => reconcileInit(name, key, this.#server()));
		return create(GetControllerResponseSchema, {
			controller: controllerMessage(state, this.#server()),
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
