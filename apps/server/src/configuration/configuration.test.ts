import { describe, expect, it } from "vitest";
import { parseCommandLine } from "./configuration.ts";
import { help } from "./help.ts";
import { allSettings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

describe("parseCommandLine", () => {
	it("has a default for every flag", () => {
		expect(parseCommandLine([])).toEqual({
			kind: "serve",
			configuration: {
				listen: { host: "127.0.0.1", port: 7575 },
				dataDirectory: "./data",
				storage: "sqlite",
				modules: [],
				allowAnonymous: false,
				console: true,
				limits: {},
				callLimits: {},
				logLevel: "info",
			},
		});
	});

	it("reads every flag, with a space or an equals sign", () => {
		expect(
			parseCommandLine([
				...["--listen", "[::1]:0"],
				"--data-dir=-odd",
				...["--storage", "memory"],
				...["--module", "./a.ts", "--module=./b.ts"],
			]),
		).toEqual({
			kind: "serve",
			configuration: {
				listen: { host: "::1", port: 0 },
				dataDirectory: "-odd",
				storage: "memory",
				modules: ["./a.ts", "./b.ts"],
				allowAnonymous: false,
				console: true,
				limits: {},
				callLimits: {},
				logLevel: "info",
			},
		});
	});

	it("reads which deployment the server is", () => {
		const flags = [
			...["--deployment-service=iam", "--deployment-region=us-west2"],
			...["--internal-listen=127.0.0.1:7576", "--deployment-credential-file=secret"],
			"--drop-versions-in-use",
		];
		expect(
			parseCommandLine([...flags, "--deployment-meta-addresses=http://a:1,http://b:2"]),
		).toMatchObject({
			configuration: {
				deployment: {
					service: "iam",
					region: "us-west2",
					address: "http://127.0.0.1:7576",
					metaAddresses: ["http://a:1", "http://b:2"],
					dropsVersionsInUse: true,
				},
			},
		});
		expect(() => parseCommandLine(flags)).toThrow(
			"--deployment-service needs --deployment-meta-addresses",
		);
		expect(() => parseCommandLine(["--internal-listen=127.0.0.1:7576"])).toThrow(
			"--internal-listen needs --deployment-service",
		);
		expect(() => parseCommandLine(["--drop-versions-in-use"])).toThrow(
			"--drop-versions-in-use needs --deployment-service",
		);
		expect(() => parseCommandLine(["--deployment-service=US"])).toThrow(
			'--deployment-service "US" must consist of lower-case letters',
		);
	});

	it("reads the endpoints and the user of etcd", () => {
		const command = parseCommandLine([
			...["--storage=etcd", "--etcd-endpoints=https://a:2379,https://b:2379"],
			...["--etcd-prefix=/music", "--etcd-ca-file=ca.pem"],
			...["--etcd-user=plinth", "--etcd-password-file=password"],
		]);
		expect(command).toMatchObject({
			configuration: {
				storage: "etcd",
				etcd: {
					endpoints: ["https://a:2379", "https://b:2379"],
					prefix: "/music",
					tls: { caFile: "ca.pem" },
					auth: { user: "plinth", passwordFile: "password" },
				},
			},
		});
	});

	it("asks for help, and the help names every flag", () => {
		expect(parseCommandLine(["--help"])).toEqual({ kind: "help" });
		for (const { flag } of allSettings) {
			expect(help).toContain(`  --${flag}`);
		}
	});

	it.each([
		[["--lisen", "x:1"], "unknown flag --lisen: did you mean --listen?"],
		[["-l"], "unknown flag -l"],
		[["serve"], 'unexpected argument "serve"'],
		[["--listen"], "--listen needs a value"],
		[["--data-dir="], "--data-dir needs a value"],
		[["--data-dir", "--storage", "memory"], "--data-dir needs a value, got the flag --storage"],
		[["--help=yes"], "--help takes no value"],
		[["--storage", "memory", "--storage", "sqlite"], "--storage is set twice"],
		[["--storage", "disk"], '--storage "disk" is not one of sqlite, memory, etcd'],
		[["--storage", "etcd"], "--storage etcd needs --etcd-endpoints"],
		[["--advertised-address=http://a:1"], "--advertised-address needs --storage etcd"],
		[["--storage=etcd", "--advertised-address=a:1"], "is not an http or https URL"],
		[["--storage=etcd", "--etcd-endpoints=localhost"], '"localhost" is not the URL'],
		[["--storage=etcd", "--etcd-endpoints=http://a", "--etcd-user=x"], "must be set together"],
		[["--etcd-prefix", "/music"], "--etcd-prefix needs --storage etcd"],
		[["--listen", "7575"], '--listen "7575" is not <host>:<port>'],
		[["--listen", "0.0.0.0:7575"], "--listen 0.0.0.0:7575 is reachable from other machines"],
	])("refuses %j and names what is wrong", (args, message) => {
		expect(() => parseCommandLine(args)).toThrow(UsageError);
		expect(() => parseCommandLine(args)).toThrow(message);
	});
});
