import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { idOf, type ResourceType, referenceTo, resourceOf } from "@plinth/resource";
import {
	createServer,
	defineModule,
	type Module,
	type Server,
	type ServerOptions,
} from "@plinth/server";
import { runCommand } from "@plinth/server/command";
import { temporaryFolder } from "@plinth/test-support";
import { freePort } from "@plinth/test-support/ports";
import { onTestFinished } from "vitest";
import { FilmSchema, ScreeningSchema } from "../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film, Screening } from "./cinema.fixture.ts";
import { type RunOptions, runPlinth } from "./run-plinth.fixture.ts";

type ScreeningInit = MessageInitShape<typeof ScreeningSchema>;

/** A reference to a resource of the cinema that was restored. */
export function there(type: ResourceType, name: string) {
	return { ...referenceTo({ type: type.type, name }), region: "r1" };
}

/** Options of a server of a cinema. */
interface StartOptions {
	readonly storage?: ServerOptions["storage"];
	readonly types?: readonly ResourceType[];
}

/** A meta deployment, and what starts servers of other deployments that it registers. */
export async function startMeta() {
	const folder = await temporaryFolder();
	const credentialFile = join(folder, "credential");
	await writeFile(credentialFile, "a-credential-of-all-deployments\n");
	const metaAddresses: string[] = [];
	const startServer = async (
		service: string,
		region: string,
		storage: ServerOptions["storage"],
		modules: readonly Module[],
	) => {
		const port = await freePort();
		const address = `http://127.0.0.1:${port}`;
		const server = createServer({
			...{ storage, modules },
			listen: { host: "127.0.0.1", port: 0 },
			deployment: {
				...{ service, region, address, credentialFile, metaAddresses },
				internalListen: { host: "127.0.0.1", port },
			},
		});
		await server.start();
		onTestFinished(() => server.stop());
		return { server, address };
	};
	metaAddresses.push((await startServer("meta", "r1", { kind: "memory" }, [])).address);
	const start = async (
		region: string,
		{ storage = { kind: "memory" }, types = [Film, Screening] }: StartOptions = {},
	) => {
		const module = defineModule({ name: "cinema", types });
		return (await startServer("cinema", region, storage, [module])).server;
	};
	return { folder, start };
}

/**
 * Cinemas in two regions. The one in `r1` has lost the film `alien` and the screening `first` in a restore; it still has
 * the film `kept`. The one in `r2` has screenings that may reference them.
 */
export async function startRestoredCinemas(screenings: Readonly<Record<string, ScreeningInit>>) {
	const { folder, start } = await startMeta();
	const data = join(folder, "data");
	const startFirst = () => start("r1", { storage: { kind: "sqlite", directory: data } });
	const before = await startFirst();
	await writeFilm(before, "kept");
	await before.stop();
	const copy = join(folder, "copy.sqlite");
	await command("backup", copy, "--data-dir", data);
	const lost = await startFirst();
	await writeFilm(lost, "alien");
	await writeScreening(lost, "first", {});
	const second = await start("r2");
	for (const [name, init] of Object.entries(screenings)) {
		await writeScreening(second, name, init);
	}
	await lost.stop();
	await command("restore", copy, "--data-dir", data);
	const first = await startFirst();
	const run = (args: readonly string[], options: RunOptions = {}) =>
		runPlinth([...args, "--server", second.address], options);
	return { first, second, run };
}

/** Writes a film to a server. */
export async function writeFilm(server: Server, name: string): Promise<void> {
	const resource = resourceOf(Film, {
		id: idOf(Film, name),
		data: create(FilmSchema, { title: name }),
	});
	await server.client.write({ resource });
}

/** Writes a screening to a server. */
export async function writeScreening(
	server: Server,
	name: string,
	init: ScreeningInit,
): Promise<void> {
	const data = create(ScreeningSchema, init);
	await server.client.write({
		resource: resourceOf(Screening, { id: idOf(Screening, name), data }),
	});
}

/** Runs a command of `plinth-server`. */
async function command(...args: readonly string[]): Promise<void> {
	let errors = "";
	const code = await runCommand(args, {
		environment: {},
		stdout: { write: () => {} },
		stderr: { write: (text) => (errors += text) },
		serve: () => Promise.reject(new Error("it does not serve")),
	});
	if (code !== 0) {
		throw new Error(errors);
	}
}
