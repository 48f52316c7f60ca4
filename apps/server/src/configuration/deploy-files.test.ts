import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { itWith } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseAllDocuments } from "yaml";
import { defaultStopLimitMs } from "../server-options.ts";
import { type Configuration, parseCommandLine } from "./configuration.ts";

const folder = join(import.meta.dirname, "../../../../deploy");
const text = (name: string) => readFileSync(join(folder, name), "utf8");

/** The longest time from a signal to the end of the process, in seconds: the limit, and 5 s after it. */
function longestStop({ stopLimitMs = defaultStopLimitMs }: Configuration): number {
	return stopLimitMs / 1_000 + 5;
}

/** What a server does that is started without flags, in that environment. */
function configured(environment: Readonly<Record<string, string>>): Configuration {
	const command = parseCommandLine([], environment);
	if (command.kind !== "serve") {
		throw new Error(`expected to serve, not ${command.kind}`);
	}
	return command.configuration;
}

describe("the unit of systemd", () => {
	const unit = text("systemd/plinth-server.service");
	const settings = [...unit.matchAll(/^(?<key>\w+)=(?<value>.*)$/gm)].map(
		({ groups }) => [groups?.key ?? "", groups?.value ?? ""] as const,
	);
	const settingOf = (key: string) => settings.find(([each]) => each === key)?.[1];

	it("has settings that a server accepts, and waits for it to stop", () => {
		const variables = settings.flatMap(([key, value]) =>
			key === "Environment" ? [value.split("=")] : [],
		);
		const configuration = configured(Object.fromEntries(variables));
		expect(configuration).toMatchObject({
			dataDirectory: `/var/lib/${settingOf("StateDirectory")}`,
			modules: ["./dist/module.js"],
		});
		expect(Number.parseInt(settingOf("TimeoutStopSec") ?? "", 10)).toBeGreaterThan(
			longestStop(configuration),
		);
	});

	itWith("systemd-analyze")("is one that systemd understands, and calls well protected", () => {
		const copy = mkdtempSync(join(tmpdir(), "plinth-unit-"));
		onTestFinished(() => rmSync(copy, { recursive: true }));
		const path = join(copy, "plinth-server.service");
		// Only programs that exist are accepted.
		writeFileSync(path, unit.replace(/^ExecStart=.*$/m, `ExecStart=${process.execPath}`));
		const verified = spawnSync("systemd-analyze", ["verify", "--man=no", path], {
			encoding: "utf8",
		});
		expect(verified.stderr.split("\n").filter((line) => line.includes("plinth"))).toEqual([]);
		const reviewed = spawnSync(
			"systemd-analyze",
			["security", "--offline=yes", "--threshold=20", path],
			{ encoding: "utf8" },
		);
		expect(reviewed.status, reviewed.stdout).toBe(0);
	});
});

type Labels = Readonly<Record<string, string>>;

interface Service {
	readonly metadata: { readonly name: string };
	readonly spec: { readonly selector: Labels };
}

interface Pod {
	readonly containers: readonly {
		readonly env: readonly { readonly name: string; readonly value: string }[];
		readonly ports: readonly { readonly containerPort: number }[];
		readonly volumeMounts: readonly { readonly mountPath: string }[];
	}[];
	readonly terminationGracePeriodSeconds: number;
}

interface StatefulSet {
	readonly spec: {
		readonly serviceName: string;
		readonly selector: { readonly matchLabels: Labels };
		readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod };
	};
}

describe("the manifests of Kubernetes for one server", () => {
	const documents = parseAllDocuments(text("kubernetes/single.yaml"));
	// The parts that the tests read; the test of their number is the first one.
	const [service, { spec }] = documents.map((document) => document.toJS()) as [
		Service,
		StatefulSet,
	];

	it("are a service and a stateful set that fit together", () => {
		expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
		expect(documents).toHaveLength(2);
		expect(service.spec.selector).toEqual(spec.template.metadata.labels);
		expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels);
		expect(spec.serviceName).toBe(service.metadata.name);
	});

	it("have settings that a server accepts, and wait for it to stop", () => {
		const { containers, terminationGracePeriodSeconds } = spec.template.spec;
		const [container] = containers;
		const variables = container?.env.map(({ name, value }) => [name, value]) ?? [];
		const configuration = configured(Object.fromEntries(variables));
		expect(container?.ports).toMatchObject([{ containerPort: configuration.listen.port }]);
		const mounted = container?.volumeMounts.filter(({ mountPath }) =>
			configuration.dataDirectory.startsWith(`${mountPath}/`),
		);
		expect(mounted).toHaveLength(1);
		expect(terminationGracePeriodSeconds).toBeGreaterThan(longestStop(configuration));
	});
});
