import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CinemaServer, startCinema } from "./cinema-server.fixture.ts";
import { exitCodes } from "./exit-codes.ts";
import { runPlinth } from "./run-plinth.fixture.ts";

let server: CinemaServer;
let folder: string;

beforeAll(async () => {
	server = await startCinema();
	folder = await mkdtemp(join(tmpdir(), "plinth-errors-"));
});

afterAll(async () => {
	await server[Symbol.asyncDispose]();
	await rm(folder, { recursive: true });
});

const { usage, unreachable } = exitCodes;

/** What a command line writes to standard error, of which this is all that it does. */
async function messageOf(
	code: number,
	args: readonly string[],
	options: Parameters<typeof runPlinth>[1] = {},
): Promise<string> {
	const result = await runPlinth(args, options);
	expect({ code: result.code, out: result.out }).toEqual({ code, out: "" });
	return result.err.replaceAll(folder, "/home").replaceAll(server.address, "http://server");
}

/** The message about a file of this content that is applied. */
const applied = (...lines: readonly string[]) =>
	messageOf(usage, ["apply", "-f", "-", "--server", server.address], {
		stdin: `${lines.join("\n")}\n`,
	});

const deployment = [
	...["apiVersion: apps/v1", "kind: Deployment", "metadata:", "  name: web"],
	...["  namespace: shop", "  labels:", "    app: web", "spec:", "  replicas: 3"],
];

/** The lines of a file, and its problems. */
const files: readonly (readonly [string, readonly string[], readonly string[]])[] = [
	[
		"a manifest of Kubernetes",
		deployment,
		[
			"standard input:1:1 (document 1): this is a manifest of Kubernetes, with apiVersion, kind and metadata.name; the form of a resource here is",
			"",
			"  type: apps.v1.Deployment",
			"  name: web",
			"  namespace: shop",
			"  metadata:",
			"    app: web",
			"  data:",
			"    replicas: 3",
			"",
			"(the server has no type of this kind: plinth types lists those that it has)",
		],
	],
	[
		"a manifest of Kubernetes whose kind is a type here",
		[
			...["apiVersion: cinema.example.com/v1", "kind: Hall", "metadata:", "  name: one"],
			...["  namespace: shop", "spec:", "  seats: 3"],
		],
		[
			"standard input:1:1 (document 1): this is a manifest of Kubernetes, with apiVersion, kind and metadata.name; the form of a resource here is",
			"",
			"  type: cinema.v1.Hall",
			"  name: one",
			"  data:",
			"    seats: 3",
		],
	],
	[
		"a list of manifests of Kubernetes in JSON",
		['{"apiVersion": "v1", "kind": "List", "items": []}'],
		[
			"standard input:1:1 (document 1): this is a list of manifests of Kubernetes; here, each resource is a document, or an entry of a list, with type, name, metadata and data",
		],
	],
	[
		"a tab",
		["type: Film", "name: a", "data:", "\ttitle: x"],
		["standard input:4:1 (document 1): Tabs are not allowed as indentation: use spaces"],
	],
	[
		"wrong indentation",
		["type: Film", " name: a"],
		[
			"standard input:1:7 (document 1): Nested mappings are not allowed in compact mappings: check the indentation of this line and the next",
		],
	],
	[
		"a misspelled type",
		["type: Flim", "name: a"],
		["standard input:1:7 (document 1): type: unknown type Flim; did you mean Film?"],
	],
	[
		"a type that the server lacks",
		["type: Studio", "name: a"],
		[
			"standard input:1:7 (document 1): type: unknown type Studio: `plinth types` lists those of the server that you may use; to add one, start the server with its module (plinth-server --module)",
		],
	],
	[
		"a misspelled field of the data",
		["type: Film", "name: a", "data: {titel: x}"],
		["standard input:3:8 (document 1): data.titel: Film has no such field; did you mean title?"],
	],
	[
		"a misspelled field of the document",
		["type: Film", "nam: a"],
		[
			"standard input:2:1 (document 1): nam: unknown field; did you mean name?",
			"standard input:1:1 (document 1): name: is required",
		],
	],
	[
		"no resource but a long text",
		[`"${"x".repeat(50)}\\u009b${"y".repeat(1_000_000)}"`],
		[
			`standard input:1:1 (document 1): expected a resource: type, name, data, got "${"x".repeat(50)}\\u009b${"y".repeat(9)}…"`,
		],
	],
	[
		"a value of another type",
		["type: Film", "name: a", "data: {title: 3}"],
		["standard input:3:15 (document 1): data.title: expected string, got 3: put it in quotes"],
	],
];

/** The lines of a configuration file, and the problem. */
const configurations: readonly (readonly [string, readonly string[], string])[] = [
	[
		"a misspelled field",
		["contexts:", "  a:", "    sever: http://b"],
		"3:5: contexts.a has no field sever; did you mean server?",
	],
	["a misspelled section", ["context: {}"], "1:1: it has no field context; did you mean contexts?"],
	[
		"a missing field",
		["contexts:", "  a:", "    token: s3cret"],
		"2:3: contexts.a.server is required",
	],
	[
		"a value of another type",
		["contexts:", "  a:", "    server: 3"],
		"3:5: contexts.a.server must be a string",
	],
	["no mapping", ["- a"], "1:1: it must be a mapping"],
	["a tab", ["contexts:", "\ta: {}"], "2:1: it is not valid YAML: correct or delete it"],
];

/** A command line that fails before it calls the server, its exit code, and its message. */
const commandLines: readonly (readonly [readonly string[], number, string])[] = [
	[
		["types", "--sever", "http://a"],
		usage,
		["unknown flag --sever: did you mean --server?", "(run it with --help for usage)"].join("\n"),
	],
	[
		["aply"],
		usage,
		["unknown command 'aply': did you mean apply?", "(run it with --help for usage)"].join("\n"),
	],
	[
		["apply"],
		usage,
		["missing required flag -f, --filename <file...>", "(run it with --help for usage)"].join("\n"),
	],
	[
		["apply", "-f", "nowhere.yaml", "--server", "SERVER"],
		usage,
		"can't read nowhere.yaml: no such file",
	],
	[
		["types", "--server", "htp://a"],
		usage,
		"htp://a is not a server address: write it as http://127.0.0.1:7575",
	],
	[
		["types", "--request-timeout", "soon"],
		usage,
		'--request-timeout "soon" is not a duration: write it as 500ms, 30s, 2m or 1h',
	],
	[
		["types", "--request-timeout", "-1s"],
		usage,
		'--request-timeout "-1s" is not a duration: write it as 500ms, 30s, 2m or 1h',
	],
	[
		["help", "gte"],
		usage,
		"unknown command 'gte': did you mean get?\n(run it with --help for usage)",
	],
	[["help", "nothing"], usage, "unknown command 'nothing'\n(run it with --help for usage)"],
	[
		["context", "help", "lst"],
		usage,
		"unknown command 'lst': did you mean list?\n(run it with --help for usage)",
	],
	[
		["diff", "a.yaml", "b.yaml"],
		usage,
		"missing required flag -f, --filename <file...>: did you mean -f a.yaml b.yaml?\n(run it with --help for usage)",
	],
	[
		["types", "--ca-file", "nowhere.pem", "--server", "https://127.0.0.1:1"],
		usage,
		"can't read nowhere.pem: no such file",
	],
	[["types", "--token-file", "/"], usage, "can't read the token from /: it is a directory"],
	[
		["api", "a.B/C", "-d", "@nowhere.json", "--server", "SERVER"],
		usage,
		"can't read nowhere.json: no such file",
	],
	[
		["types", "--config", "nowhere.yaml"],
		usage,
		"--config: can't read nowhere.yaml: no such file (plinth context set creates it)",
	],
	[
		["context", "list", "--config", "nowhere.yaml"],
		usage,
		"--config: can't read nowhere.yaml: no such file (plinth context set creates it)",
	],
	[
		["get", "", "--server", "SERVER"],
		usage,
		'unknown type "": `plinth types` lists those of the server that you may use; to add one, start the server with its module (plinth-server --module)',
	],
	[
		["get", "Film", "", "--server", "SERVER"],
		usage,
		'"" is not the name of a cinema.v1.Film: it must not be empty',
	],
	[
		["describe", "Film/THE_1", "--server", "SERVER"],
		usage,
		'"THE_1" is not the name of a cinema.v1.Film: it must consist of lower-case letters, digits and hyphens, and start and end with a letter or digit',
	],
	[
		["delete", "Flim", "--all", "--server", "SERVER"],
		usage,
		"unknown type Flim; did you mean Film?",
	],
	[
		["apply", "-f", "-", "--set", "a", "--prune", "Flim", "--server", "SERVER"],
		usage,
		"unknown type Flim; did you mean Film?",
	],
	[
		["edit", "Film", "alien", "--server", "SERVER"],
		usage,
		"can't open an editor: this is not a terminal. Set VISUAL or EDITOR to a command that edits the file, or use plinth apply",
	],
	[
		["types", "--context", "prod"],
		usage,
		"unknown context prod. Create it with: plinth context set prod --server URL",
	],
];

describe("an error of a user is a sentence", () => {
	it.each(files)("about a file that is applied: %s", async (_name, lines, problems) => {
		const all = [...problems, "nothing was changed", ""];
		expect(await applied(...lines)).toBe(`plinth: ${all.join("\n")}`);
	});

	it("about a list that is nested too deeply", async () => {
		expect(await applied("[".repeat(100_000))).toMatch(
			/^plinth: standard input:1:\d+ \(document 1\): nested too deeply\nnothing was changed\n$/,
		);
	});

	it("about the name of a document", async () => {
		const file = join(folder, "name.yaml");
		await writeFile(file, "type: Film\nname: THE_1\n");
		expect(await messageOf(1, ["apply", "-f", file, "--server", server.address])).toMatch(
			/^\/home\/name.yaml:2:1 \(document 1\): cinema.v1.Film default\/default\/THE_1: id.name invalid/,
		);
	});

	it("about a file without documents", async () => {
		expect(await applied("")).toBe("plinth: no documents in standard input\n");
	});

	it.each(configurations)("about a configuration file: %s", async (_name, lines, problem) => {
		const file = join(folder, "config.yaml");
		await writeFile(file, `${lines.join("\n")}\n`);
		const message = await messageOf(usage, ["types", "--config", file]);
		expect(message).toBe(`plinth: /home/config.yaml:${problem}\n`);
	});

	it.each(commandLines)("about a command line: %j", async (args, code, problem) => {
		const known = args.map((each) => each.replace("SERVER", server.address));
		expect(await messageOf(code, known)).toBe(`plinth: ${problem}\n`);
	});

	it("about a server that does not run", async () => {
		const other = createServer().listen(0, "127.0.0.1");
		await new Promise((resolve) => other.once("listening", resolve));
		const { port } = other.address() as AddressInfo;
		await new Promise((resolve) => other.close(resolve));
		const message = await messageOf(unreachable, ["types", "--server", `http://127.0.0.1:${port}`]);
		expect(message.replaceAll(String(port), "PORT")).toBe(
			"plinth: can't reach http://127.0.0.1:PORT: connect ECONNREFUSED 127.0.0.1:PORT. Is the server running at this address? Change the address with --server, PLINTH_SERVER or a context\n",
		);
	});

	it("about a program that is no server", async () => {
		const other = createServer((_request, response) => response.end("hello"));
		await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
		const { port } = other.address() as AddressInfo;
		const message = await messageOf(unreachable, ["types", "--server", `http://127.0.0.1:${port}`]);
		other.close();
		expect(message.replaceAll(String(port), "PORT")).toBe(
			"plinth: http://127.0.0.1:PORT does not speak HTTP/2, which gRPC needs. Is there a proxy that speaks HTTP/1.1 only?\n",
		);
	});
});
