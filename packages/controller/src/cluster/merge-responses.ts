import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
	type GetControllerResponse,
	GetControllerResponseSchema,
	type ListControllersResponse,
	ListControllersResponseSchema,
	type ListReconcilesResponse,
	ListReconcilesResponseSchema,
	type Reconcile,
	ReconcileSchema,
	ReconcileState,
	type ServerSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { maxKeys } from "../manager/controller-messages.ts";
import { agentsOf, controllersOf, keysOf, newestReports } from "./agent-reports.ts";
import type { ServerReport } from "./cluster.ts";
import { byDuration, mergeControllers } from "./merge-controllers.ts";

/** What becomes of the reports of agents: the server that has asked all others merges them, and one that it asks does not. */
type OfAgents = "merged" | "apart";

/** The controllers of all servers, and of the agents that have reported to them. */
export function mergeListings(
	reports: readonly ServerReport<ListControllersResponse>[],
	of: OfAgents = "merged",
): ListControllersResponse {
	const responses = responsesOf(reports);
	const reported = responses.flatMap((each) => each.agents);
	const agents = of === "merged" ? newestReports(reported) : [];
	const byName = Map.groupBy(
		[...responses.flatMap(({ controllers }) => controllers), ...controllersOf(agents)],
		({ name }) => name,
	);
	const holds = responses.flatMap(({ holdsLease }) => holdsLease ?? []);
	return create(ListControllersResponseSchema, {
		controllers: [...byName.values()].flatMap((all) => mergeControllers(all) ?? []),
		agents: of === "merged" ? agentsOf(agents) : reported,
		...(holds.length > 0 && { holdsLease: holds.includes(true) }),
		servers: reports.flatMap((report) => {
			const { holdsLease } = report.response ?? {};
			return serverInits(report).map((server) => ({
				...server,
				...(holdsLease !== undefined && { holdsLease }),
			}));
		}),
	});
}

/** One controller of all servers and agents that have it; `undefined` if none does. */
export function mergeDetails(
	reports: readonly ServerReport<GetControllerResponse>[],
	of: OfAgents = "merged",
): GetControllerResponse | undefined {
	const responses = responsesOf(reports);
	const reported = responses.flatMap((each) => each.agents);
	if (of === "apart" && responses.every(({ controller }) => controller === undefined)) {
		return reported.length === 0
			? undefined
			: create(GetControllerResponseSchema, { agents: reported });
	}
	const agents = of === "merged" ? newestReports(reported) : [];
	const controller = mergeControllers([
		...responses.flatMap((each) => each.controller ?? []),
		...controllersOf(agents),
	]);
	return (
		controller &&
		create(GetControllerResponseSchema, {
			controller,
			agents: of === "merged" ? agentsOf(agents) : reported,
			failing: [...responses.flatMap(({ failing }) => failing), ...keysOf(agents, "failing")]
				.sort((a, b) => failingSinceMs(a) - failingSinceMs(b))
				.slice(0, maxKeys),
			running: [...responses.flatMap(({ running }) => running), ...keysOf(agents, "running")]
				.sort((a, b) => byDuration(b.inState, a.inState))
				.slice(0, maxKeys),
			servers: reports.flatMap(serverInits),
		})
	);
}

/** What each controller does with one resource: on the servers that reconcile it, if any of them has responded. */
export function mergeReconciles(
	reports: readonly ServerReport<ListReconcilesResponse>[],
): ListReconcilesResponse {
	const byController = Map.groupBy(
		responsesOf(reports).flatMap(({ reconciles }) => reconciles),
		({ controller }) => controller,
	);
	return create(ListReconcilesResponseSchema, {
		reconciles: [...byController.values()].flatMap(whereReconciled),
		servers: reports.flatMap(({ server, missing = "" }) =>
			server === undefined ? [] : [{ name: server.name, missing }],
		),
	});
}

function whereReconciled(all: readonly Reconcile[]): readonly Reconcile[] {
	const here = all.filter(({ state }) => state !== ReconcileState.ELSEWHERE);
	const [elsewhere] = all;
	return here.length > 0 || elsewhere === undefined
		? here
		: [create(ReconcileSchema, { ...elsewhere, server: "" })];
}

function failingSinceMs({ failure }: Reconcile): number {
	return failure?.since === undefined ? 0 : timestampMs(failure.since);
}

function responsesOf<T>(reports: readonly ServerReport<T>[]): readonly T[] {
	return reports.flatMap(({ response }) => (response === undefined ? [] : [response]));
}

/** The server of a report; none if it has no name. */
function serverInits({
	server,
	missing = "",
}: ServerReport<unknown>): readonly MessageInitShape<typeof ServerSchema>[] {
	if (server === undefined) {
		return [];
	}
	const { name, address, startedAtMs, version } = server;
	return [{ name, address, startedAt: timestampFromMs(startedAtMs), version, missing }];
}
