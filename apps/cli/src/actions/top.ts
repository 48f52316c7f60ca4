import { toJson } from "@bufbuild/protobuf";
import {
	type Overview,
	OverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { followOverviews } from "../api/overviews.ts";
import type { ServerSession } from "../api/server-session.ts";
import { parseDuration } from "../configuration/duration.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import type { Terminal } from "../io.ts";
import { renderOverview, type ShownOverview } from "../top/render-overview.ts";
import { Screen } from "../top/screen.ts";

/** The flags of `plinth top`. */
export interface TopFlags {
	readonly interval: string;
	readonly once?: boolean;
	readonly output: "table" | "yaml" | "json";
}

/** The intervals that a server accepts, in milliseconds. */
const [leastMs, mostMs] = [1_000, 60_000];

/** Shows an overview of the cluster: live in a terminal, otherwise once. */
export async function top(
	session: ServerSession,
	{ interval, once = false, output }: TopFlags,
): Promise<ExitCode> {
	const intervalMs = parseDuration("--interval", interval);
	if (intervalMs < leastMs || intervalMs > mostMs) {
		throw usageFailure("--interval must be from 1s to 60s");
	}
	const { terminal } = session.io;
	return once || output !== "table" || terminal === undefined
		? showOnce(session, output)
		: showLive(session, terminal, intervalMs);
}

/** Prints the second overview, which has rates. A script does not wait for a server that may never be there again. */
async function showOnce(session: ServerSession, output: TopFlags["output"]): Promise<ExitCode> {
	const { io } = session;
	for await (const change of followOverviews(session, leastMs)) {
		if (change.kind === "lost") {
			throw new Failure(exitCodes.unreachable, `connection lost: ${change.reason}`);
		}
		if (change.overview.rateInterval !== undefined) {
			io.out(await printed(session, change.overview, output));
			break;
		}
	}
	return exitCodes.ok;
}

async function printed(
	{ io, settings }: ServerSession,
	overview: Overview,
	output: TopFlags["output"],
): Promise<string> {
	const { server } = settings.endpoint;
	if (output === "table") {
		const { width, color } = io;
		const lines = renderOverview({ server, overview }, { width, height: undefined, color });
		return lines.map((line) => `${line}\n`).join("");
	}
	const form = toJson(OverviewSchema, overview, { useProtoFieldName: true });
	return output === "json"
		? `${JSON.stringify(form, undefined, 2)}\n`
		: (await import("@plinth/documents/yaml")).toYaml(form);
}

/** Shows overviews until a key or a signal ends it. */
async function showLive(
	session: ServerSession,
	terminal: Terminal,
	intervalMs: number,
): Promise<ExitCode> {
	const { io } = session;
	const { server } = session.settings.endpoint;
	const quit = new AbortController();
	let exitCode: ExitCode = exitCodes.ok;
	let shown: ShownOverview | undefined;
	using screen = new Screen(io, terminal, {
		onKey: (key) => {
			if (key === "q" || key === "\u0003") {
				exitCode = key === "q" ? exitCodes.ok : exitCodes.interrupted;
				quit.abort();
			}
		},
		onResize: () => draw(),
	});
	const draw = () => {
		const { columns, rows: height } = terminal.size();
		// The last column stays free: clearing the rest of a line that ends there would clear its last character.
		const width = columns - 1;
		screen.draw(
			shown === undefined
				? [`waiting for ${server}`]
				: renderOverview(shown, { width, height, color: io.color }),
		);
	};
	draw();
	try {
		const signal = AbortSignal.any([io.signal, quit.signal]);
		for await (const change of followOverviews(session, intervalMs, signal)) {
			if (change.kind === "overview") {
				shown = { server, overview: change.overview };
			} else if (shown !== undefined) {
				shown = { ...shown, lost: change.reason };
			}
			draw();
		}
	} catch (error) {
		if (!quit.signal.aborted) {
			throw error;
		}
	}
	return exitCode;
}
