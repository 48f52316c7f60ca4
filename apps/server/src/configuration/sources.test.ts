import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Configuration, parseCommandLine } from "./configuration.ts";
import { allSettings } from "./settings.ts";

/** A configuration file of that content. */
function file(content: string): string {
	const folder = mkdtempSync(join(tmpdir(), "plinth-configuration-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	const path = join(folder, "plinth.yaml");
	writeFileSync(path, content);
	return path;
}

function configured(
	args: readonly string[],
	environment: Readonly<Record<string, string>> = {},
): Configuration {
	const command = parseCommandLine(args, environment);
	if (command.kind !== "serve") {
		throw new Error(`expected to serve, not ${command.kind}`);
	}
	return command.configuration;
}

describe("what is configured", () => {
	it("comes from flags first, then from the environment, then from the file", () => {
		const config = file("listen: 127.0.0.1:1\ndataDir: ./file\nmemoryLimit: 1GiB\n");
		const { listen, dataDirectory, memoryLimitBytes } = configured(
			["--config", config, "--listen=127.0.0.1:3"],
			{ PLINTH_LISTEN: "127.0.0.1:2", PLINTH_DATA_DIR: "./environment" },
		);
		expect(listen.port).toBe(3);
		expect(dataDirectory).toBe("./environment");
		expect(memoryLimitBytes).toBe(1024 ** 3);
	});

	it("may be in sections and lists of a file, which the environment may name", () => {
		const config = file(
			"storage: etcd\netcd:\n  endpoints: [http://a:1, http://b:2]\n  prefix: /music\nmodules: ./one.ts\nlimits:\n  callsPerSecond: 5\n  headersTimeout: 2s\n  messageBytes: 64KiB\n",
		);
		expect(configured([], { PLINTH_CONFIG: config })).toMatchObject({
			etcd: { endpoints: ["http://a:1", "http://b:2"], prefix: "/music" },
			modules: ["./one.ts"],
			limits: { headersMs: 2_000, messageBytes: 65_536 },
			callLimits: { callsPerSecond: 5 },
		});
	});

	it("of hosts and origins may come from each source, in the form in which they are compared", () => {
		const expected = {
			allowedHosts: ["plinth.example", "b.example"],
			cors: { allowedOrigins: ["https://console.example"] },
		};
		const flags = ["--allowed-hosts", "Plinth.Example,b.example."];
		const origin = "HTTPS://console.example:443";
		expect(configured([...flags, "--cors-allowed-origins", origin])).toMatchObject(expected);
		expect(
			configured([], {
				PLINTH_ALLOWED_HOSTS: "plinth.example,b.example",
				PLINTH_CORS_ALLOWED_ORIGINS: origin,
			}),
		).toMatchObject(expected);
		const config = file(
			`allowedHosts: [plinth.example, b.example]\ncors:\n  allowedOrigins: ${origin}\n`,
		);
		expect(configured(["--config", config])).toMatchObject(expected);
		expect(() => configured(["--allowed-hosts", "*.example"])).toThrow(
			'--allowed-hosts "*.example" is not a host name such as plinth.example, without a scheme, port or wildcard',
		);
		expect(() => configured(["--cors-allowed-origins", "*"])).toThrow(
			'--cors-allowed-origins "*" is not an http or https origin such as https://console.example',
		);
	});

	it("ignores an empty file, empty variables, and variables of other programs", () => {
		expect(
			configured(["--config", file("# nothing yet\n")], {
				PLINTH_LISTEN: "",
				PLINTH_TOKEN: "of the command line",
				PLINTH_SERVICE_HOST: "10.0.0.1",
				PLINTH_PORT_7575_TCP: "tcp://10.0.0.1:7575",
				PATH: "/bin",
			}),
		).toEqual(configured([]));
	});

	it("can be said in each of the three ways, whatever it is", () => {
		const names = allSettings.flatMap(({ flag, variable, path }) => [flag, variable, path]);
		expect(new Set(names).size).toBe(
			names.length - allSettings.filter(({ flag, path }) => flag === path).length,
		);
		expect(allSettings.map(({ variable }) => variable)).toContain("PLINTH_ETCD_CA_FILE");
	});
});

describe("a file that is wrong stops the start with the line", () => {
	it.each([
		[
			"listen: 127.0.0.1:1\nlisen: x\n",
			/plinth\.yaml:2:1: unknown key lisen: did you mean listen\?/,
		],
		[
			"etcd:\n  prefix: /a\n  peers: x\n",
			/:3:\d+: unknown key etcd\.peers: known keys are endpoints, /,
		],
		[
			"limits:\n  watchesPerToken: 5\n",
			/:2:\d+: unknown key .*: did you mean limits.streamsPerSubject\?/,
		],
		["config: other.yaml\n", /:1:\d+: unknown key config/],
		["\n\nlisten: here\n", /:3:\d+: listen "here" is not <host>:<port>/],
		["listen: 0.0.0.0:1\n", /:1:\d+: listen 0\.0\.0\.0:1 is reachable from other machines/],
		["memoryLimit: lots\n", /:1:\d+: memoryLimit "lots" is not a size above 0/],
		["limits:\n  callsInFlight: 0\n", /:2:\d+: limits\.callsInFlight "0" is not a whole number/],
		["limits:\n  stopTimeout: 10\n", /:2:\d+: limits\.stopTimeout "10" is not a duration above 0/],
		["allowAnonymous: yes\n", /:1:\d+: allowAnonymous "yes" is neither true nor false/],
		["etcd: 5\n", /:1:\d+: etcd is a section/],
		["- listen\n", /:1:\d+: the configuration must be keys/],
		["listen: [a, b]\n", /:1:\d+: listen needs a single value, <host:port>$/],
		["storage: {kid: x}\n", /:1:\d+: storage needs a single value: sqlite, memory or etcd$/],
		["listen:\n", /:1:\d+: listen needs a single value/],
		["listen: a\nlisten: b\n", /:2:\d+: Map keys must be unique/],
		["listen: 'a\n", /plinth\.yaml:\d:\d+: /],
		["tls:\n  certFile: a.pem\n", /:2:\d+: tls\.certFile and --tls-key-file must be set together/],
		["jwt:\n  issuer: x\n", /:2:\d+: jwt\.issuer needs --jwt-jwks-file or --jwt-jwks-url/],
	])("%j", (content, message) => {
		expect(() => configured(["--config", file(content)])).toThrow(message);
	});

	it("and with its name if it does not exist", () => {
		expect(() => configured(["--config", "nowhere.yaml"])).toThrow("nowhere.yaml: no such file");
	});
});

describe("a variable that is wrong stops the start with its name", () => {
	it.each([
		[
			{ PLINTH_LISEN: "x" },
			"unknown variable PLINTH_LISEN in the environment: did you mean PLINTH_LISTEN?",
		],
		[
			{ PLINTH_LIMITS_WATCHES_PER_TOKEN: "5" },
			"in the environment: did you mean PLINTH_LIMITS_STREAMS_PER_SUBJECT?",
		],
		[{ PLINTH_QUITE_DIFFERENT: "x" }, "PLINTH_QUITE_DIFFERENT in the environment: see --help"],
		[{ PLINTH_STORAGE: "disk" }, 'PLINTH_STORAGE "disk" is not one of sqlite, memory, etcd'],
		[{ PLINTH_ETCD_PREFIX: "/a" }, "PLINTH_ETCD_PREFIX needs --storage etcd"],
		[
			{ PLINTH_JWT_JWKS_FILE: "keys.json", PLINTH_ACCESS_FILE: "a.yaml" },
			"JWTs need --jwt-issuer and --jwt-audience",
		],
	])("%j", (environment, message) => {
		expect(() => configured([], environment)).toThrow(message);
	});
});
