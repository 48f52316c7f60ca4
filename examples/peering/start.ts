/**
 * Starts two clusters with the types of the catalog, and an agent in front of the second one:
 *
 *     node examples/peering/start.ts [--ports WEST,EAST,AGENT] [--data-dir DIRECTORY]
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { PlinthProcess } from "./child-process.ts";

const usage =
	"usage: node examples/peering/start.ts [--ports WEST,EAST,AGENT] [--data-dir DIRECTORY]";

interface Arguments {
	readonly ports: readonly [number, number, number];
	readonly dataDirectory: string;
}

/** @throws Error that says what is wrong. */
function readArguments(): Arguments {
	const { values } = parseArgs({
		options: {
			ports: { type: "string", default: "7620,7621,7622" },
			"data-dir": { type: "string", default: "./data/peering" },
		},
	});
	const [west = 0, east = 0, agent = 0, ...others] = values.ports.split(",").map(Number);
	const ports = [west, east, agent] as const;
	const isPort = (port: number) => Number.isInteger(port) && port > 0 && port < 65_536;
	if (others.length > 0 || !ports.every(isPort) || new Set(ports).size < ports.length) {
		throw new Error(
			`--ports must be three different ports, such as 7620,7621,7622, got: "${values.ports}"`,
		);
	}
	return { ports, dataDirectory: values["data-dir"] };
}

function start({ ports, dataDirectory }: Arguments): readonly PlinthProcess[] {
	const [west, east, agent] = ports;
	mkdirSync(dataDirectory, { recursive: true });
	const module = fileURLToPath(new URL("../catalog/src/module.ts", import.meta.url));
	const logFile = (name: string) => join(dataDirectory, `${name}.log`);
	const server = (name: string, port: number) =>
		new PlinthProcess(
			...([name, port, [`--module=${module}`, `--data-dir=${join(dataDirectory, name)}`]] as const),
			logFile(name),
		);
	return [
		server("west", west),
		server("east", east),
		new PlinthProcess("agent", agent, ["agent", `--servers=127.0.0.1:${east}`], logFile("agent")),
	];
}

let settings: Arguments;
try {
	settings = readArguments();
} catch (failure) {
	console.error(`${failure instanceof Error ? failure.message : failure}\n${usage}`);
	process.exit(2);
}
const processes = start(settings);
const stop = () => Promise.all(processes.map((each) => each.stop()));
let isStopping = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
	process.on(signal, () => {
		isStopping = true;
		void stop().then(() => process.exit(0));
	});
}
try {
	await Promise.all(processes.map((each) => each.ready()));
	for (const { name, address, pid } of processes) {
		console.log(`${name.padEnd(6)} ${address}   process ${pid}`);
	}
	console.log(
		`\nLogs and data are in ${settings.dataDirectory}. Ctrl-C stops all. Try next: examples/peering/README.md`,
	);
} catch (failure) {
	if (!isStopping) {
		console.error(failure instanceof Error ? failure.message : failure);
		await stop();
		process.exit(1);
	}
}
