import { create, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type AgentReport,
	AgentReportSchema,
	type Controller,
	ControllerReportSchema,
	type Reconcile,
	type ReportControllersRequest,
	ReportControllersRequestSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type { Clock } from "@plinth/runtime";
import { controllerOn } from "../manager/controller-messages.ts";
import { byDuration } from "./merge-controllers.ts";

/** When an agent reports again, and after how many such times without a report it is forgotten. */
export const reportIntervalMs = 10_000;
const forgottenAfterMs = 3 * reportIntervalMs;

/** How much a server holds: of agents, and of bytes of each report and of all. */
const limits = { agents: 100, reportBytes: 128 * 1024, bytes: 2 * 1024 ** 2 } as const;

/** The largest request with a report, in bytes: in JSON, it is larger than what is held. */
export const reportMessageBytes = 512 * 1024;

interface HeldReport {
	readonly request: ReportControllersRequest;
	readonly bytes: number;
	readonly atMs: number;
}

/**
 * The last reports of agents, as this server has received them. An agent reports to any server, and to another one next time:
 * {@link newestReports} finds the last report of each among those of all servers.
 *
 * Invariants: a report is complete and its values are within limits, so that it can be merged with all others; what is held is
 * limited; and a report is held for 30 s.
 */
export class AgentReports {
	readonly #clock: Pick<Clock, "monotonic">;
	readonly #held = new Map<string, HeldReport>();
	#bytes = 0;

	constructor(clock: Pick<Clock, "monotonic">) {
		this.#clock = clock;
	}

	/**
	 * Holds a report in place of the one before. Of an agent that runs no controllers any more, this is remembered too: another
	 * server may hold an older report.
	 *
	 * @param request - must have passed `checkReport`.
	 * @throws ConnectError ResourceExhausted if too much would be held.
	 */
	accept(request: ReportControllersRequest): void {
		this.#forget();
		const { bytes: formerBytes = 0 } = this.#held.get(request.id) ?? {};
		const isNew = !this.#held.has(request.id);
		if (isNew && request.controllers.length === 0) {
			return;
		}
		const { length: bytes } = toBinary(ReportControllersRequestSchema, request);
		if (bytes > limits.reportBytes) {
			throw new ConnectError(
				`the report has ${bytes} bytes: at most ${limits.reportBytes} are accepted`,
				Code.ResourceExhausted,
			);
		}
		if (isNew && this.#held.size >= limits.agents) {
			throw new ConnectError(
				`${limits.agents} agents report on their controllers already: no more are shown`,
				Code.ResourceExhausted,
			);
		}
		if (this.#bytes - formerBytes + bytes > limits.bytes) {
			throw new ConnectError(
				`the reports of all agents would have more than ${limits.bytes} bytes`,
				Code.ResourceExhausted,
			);
		}
		this.#bytes += bytes - formerBytes;
		this.#held.set(request.id, { request, bytes, atMs: this.#clock.monotonic() });
	}

	/** The reports that are not too old, with their ids. */
	list(): readonly AgentReport[] {
		this.#forget();
		const nowMs = this.#clock.monotonic();
		return [...this.#held.values()].map(({ request, atMs }) => {
			const { id, name, startedAt, version, controllers } = request;
			return create(AgentReportSchema, {
				...{ id, name, version, controllers, age: durationFromMs(Math.round(nowMs - atMs)) },
				...(startedAt && { startedAt }),
			});
		});
	}

	#forget(): void {
		const beforeMs = this.#clock.monotonic() - forgottenAfterMs;
		for (const [id, { atMs, bytes }] of this.#held) {
			if (atMs <= beforeMs) {
				this.#held.delete(id);
				this.#bytes -= bytes;
			}
		}
	}
}

/** The reports without the keys that controllers work on: a list of controllers does not show them. */
export function withoutKeys(reports: readonly AgentReport[]): readonly AgentReport[] {
	return reports.map((report) =>
		create(AgentReportSchema, {
			...report,
			controllers: report.controllers.flatMap(({ controller }) =>
				controller === undefined ? [] : [create(ControllerReportSchema, { controller })],
			),
		}),
	);
}

/** The reports on the controller of a name, without others; none of agents that don't have it. */
export function reportsOn(name: string, reports: readonly AgentReport[]): readonly AgentReport[] {
	return reports.flatMap((report) => {
		const controllers = report.controllers.filter(({ controller }) => controller?.name === name);
		// An empty one may be newer than what another server holds.
		const isGone = report.controllers.length === 0;
		return controllers.length > 0 || isGone
			? [create(AgentReportSchema, { ...report, controllers })]
			: [];
	});
}

/** The last report of each agent that runs controllers, by name. */
export function newestReports(all: readonly AgentReport[]): readonly AgentReport[] {
	const byId = Map.groupBy(all, ({ id }) => id);
	return [...byId.values()]
		.flatMap((reports) => reports.toSorted((a, b) => byDuration(a.age, b.age)).slice(0, 1))
		.filter(({ controllers }) => controllers.length > 0)
		.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** The controllers of agents, each with the name of its agent in place of a server. */
export function controllersOf(agents: readonly AgentReport[]): readonly Controller[] {
	return agents.flatMap(({ name, controllers }) =>
		controllers.flatMap(({ controller }) =>
			controller === undefined ? [] : [controllerOn(controller, name, true)],
		),
	);
}

/** Keys of controllers of agents, each with the name of its agent. */
export function keysOf(
	agents: readonly AgentReport[],
	kind: "failing" | "running",
): readonly Reconcile[] {
	return agents.flatMap(({ name, controllers }) =>
		controllers.flatMap((each) => each[kind].map((key) => ({ ...key, server: name }))),
	);
}

/** The agents of reports, as callers are told of them. */
export function agentsOf(reports: readonly AgentReport[]): AgentReport[] {
	return reports.map((report) => create(AgentReportSchema, { ...report, id: "", controllers: [] }));
}
