import { randomBytes } from "node:crypto";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import { type ControllerReports, reportMessages } from "@plinth/controller";
import type { ControllerService } from "@plinth/proto";
import type { Logger, Runtime, Timer } from "@plinth/runtime";
import { serverName } from "../server-name.ts";
import { serverVersion } from "../server-version.ts";

/** Options of `reportControllers`. */
export interface ReportControllersOptions {
	readonly client: Client<typeof ControllerService>;
	readonly controllers: Pick<ControllerReports, "state" | "work">;
	readonly runtime: Pick<Runtime, "clock">;
	readonly logger: Logger;
}

/** Reports that are sent until they are stopped. */
export interface ControllerReporting {
	/** Sends a last report, without controllers. */
	stop(): Promise<void>;
}

/** The pause between reports if the server names none, and the shortest and longest that it may name, in milliseconds. */
const intervalMs = { usual: 10_000, shortest: 1_000, longest: 300_000 } as const;

/** A report without a response after this time has failed, in milliseconds: the last one delays the stop of the agent. */
const timeoutMs = { usual: 5_000, last: 1_000 } as const;

/**
 * Reports on the controllers of an agent, since servers can't call an agent to ask. A report that fails is not repeated: the
 * next one says more. Nothing else depends on reports.
 */
export function reportControllers(options: ReportControllersOptions): ControllerReporting {
	const { client, controllers, runtime, logger } = options;
	const { clock } = runtime;
	const id = randomBytes(18).toString("base64url");
	const startedAt = timestampFromMs(clock.now());
	const name = serverName.replaceAll(/[^A-Za-z0-9._:/-]/g, "-").slice(-100);
	const end = new AbortController();
	let timer: Timer | undefined;
	let problem = "";

	const send = async (
		messages: ReturnType<typeof reportMessages>,
		callOptions: CallOptions,
	): Promise<number> => {
		const { interval } = await client.reportControllers(
			{ id, name, startedAt, version: serverVersion(), controllers: messages },
			callOptions,
		);
		const nextMs = interval === undefined ? intervalMs.usual : durationMs(interval);
		return Math.min(Math.max(nextMs, intervalMs.shortest), intervalMs.longest);
	};
	const report = async () => {
		let nextMs: number = intervalMs.usual;
		try {
			const callOptions = { timeoutMs: timeoutMs.usual, signal: end.signal };
			nextMs = await send(reportMessages(controllers), callOptions);
			problem = "";
		} catch (failure) {
			const { message, code } = ConnectError.from(failure);
			// Logged once per problem. No server may be ready, which the agent logs itself.
			if (message !== problem && code !== Code.Unavailable && !end.signal.aborted) {
				problem = message;
				logger.warn(
					{ problem: message },
					`servers do not show the controllers of this agent${hint(code)}`,
				);
			}
		}
		if (!end.signal.aborted) {
			timer = clock.setTimer(nextMs, () => {
				reporting = report();
			});
		}
	};
	let reporting = report();
	return {
		async stop() {
			end.abort(new Error("the agent is stopping"));
			timer?.cancel();
			await reporting;
			// Otherwise they are shown until the servers forget them.
			await send([], { timeoutMs: timeoutMs.last }).catch(() => {});
		},
	};
}

/** What to do about a failure. */
function hint(code: Code): string {
	switch (code) {
		case Code.PermissionDenied:
			return ": grant operator:report on internal.v1.Controller to their token";
		case Code.Unimplemented:
			return ": they are older than this agent";
		default:
			return "";
	}
}
