/** The servers that are compared. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { textOption } from "@plinth/bench";
import { storeContent } from "./content.ts";
import type { GoPrograms } from "./go-programs.ts";
import type { Protocol } from "./load-client.ts";
import { type MeasuredServer, startMeasured } from "./measured-process.ts";
import { plinthServer } from "./plinth-server.ts";

interface Contender {
	readonly name: string;
	readonly command: readonly string[];
	/** Whether it stores what is written; otherwise it sends the same bytes for every call, and speaks gRPC only. */
	readonly stores: boolean;
	/** Whether it speaks Connect too. */
	readonly speaksConnect: boolean;
}

/** The servers by name, started and with their content. The first one is the product. */
export interface StartedContenders {
	readonly servers: ReadonlyMap<string, MeasuredServer>;
	/** The server that all others are compared with. */
	readonly baseline: string;
	stop(): Promise<void>;
}

const bench = join(import.meta.dirname, "..");

/** @param folder - for their files. */
function contendersFor(folder: string, go: GoPrograms | undefined): readonly Contender[] {
	const against = textOption("against");
	const node = (program: string) => [process.execPath, join(bench, program)];
	const full = { stores: true, speaksConnect: true };
	return [
		{ name: "plinth", command: plinthServer(join(bench, ".."), folder), ...full },
		{
			name: "node-http2",
			command: [...plinthServer(join(bench, ".."), folder), "--http2", "node"],
			...full,
		},
		...(against === undefined
			? []
			: [
					{
						name: "against",
						command: plinthServer(resolve(against, "apps/server"), folder),
						...full,
					},
				]),
		{ name: "adapter", command: node("bare-server.ts"), ...full },
		{ name: "echo", command: node("echo-server.ts"), stores: false, speaksConnect: false },
		...(go === undefined
			? []
			: [{ name: "grpc-go", command: [go.server], stores: true, speaksConnect: false }]),
	];
}

/** Those of `--contenders=plinth,echo`; by default the given ones, or else all that speak the protocol. */
export async function startContenders(
	protocol: Protocol,
	go: GoPrograms | undefined,
	defaults?: readonly string[],
): Promise<StartedContenders> {
	const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));
	process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
	const chosen = textOption("contenders")?.split(",") ?? defaults;
	const contenders = contendersFor(folder, go)
		.filter(({ speaksConnect }) => speaksConnect || protocol === "gRPC")
		.filter(({ name }) => chosen?.includes(name) ?? true);
	const servers = new Map<string, MeasuredServer>();
	for (const { name, command, stores } of contenders) {
		const server = await startMeasured(command, join(folder, `${name}.log`));
		servers.set(name, server);
		if (stores) {
			await storeContent(server.address);
		}
	}
	const [first, second] = contenders;
	const baseline = servers.has("grpc-go") ? "grpc-go" : (second ?? first)?.name;
	if (baseline === undefined) {
		throw new Error(`there is no contender of --contenders=${textOption("contenders")}`);
	}
	return {
		servers,
		baseline,
		async stop() {
			await Promise.all([...servers.values()].map((server) => server.stop()));
		},
	};
}
