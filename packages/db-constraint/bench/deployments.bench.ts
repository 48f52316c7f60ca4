/**
 * What the number of deployments costs one of them. A lookup for a foreign reference, a change of the registry, and a
 * follower that connects are compared with visiting everything there is. Commits and a start, of deployments that are
 * opened as a server opens them, are compared with those among the fewest deployments.
 */
import { create } from "@bufbuild/protobuf";
import { printTable, type Row, unlessQuick } from "@plinth/bench";
import { createInProcessTransport } from "@plinth/in-process";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	DeployedSchema,
	Lifecycle,
	OutgoingReferenceSchema,
	ResourceKeySchema,
	ShadowSchema,
	SourceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { idOf, referenceTo, resourceOf } from "@plinth/resource";
import { aborted, silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { ConcernedShadows } from "../src/controller/concerned-shadows.ts";
import { deletionFeed } from "../src/protocol/deletion-feed.ts";
import type { Environment } from "../src/registry/environment.ts";
import { localEnvironment } from "../src/registry/local-environment.ts";
import { Deployment } from "../src/registry/meta-types.ts";
import { RegistryView } from "../src/registry/registry-view.ts";
import { ServiceDescriptor } from "../src/schema/service-descriptor.ts";
import { HeldDeletions } from "../src/shadow/held-deletions.ts";
import { holders } from "../src/shadow/shadow.ts";
import { ShadowIndex } from "../src/shadow/shadow-index.ts";
import { putRecord } from "../src/shadow/shadow-records.ts";
import { Thing, Widget, WidgetSchema } from "../testdata/types.ts";
import { alphaSpec, BenchNetwork, type BenchServer, betaSpec, metaSpec } from "./servers.ts";

const services = 20;
const shadows = unlessQuick(20_000, 200);
const sizes = unlessQuick([20, 200, 1_000], [20]);
const rounds = unlessQuick(200, 2);
const starts = unlessQuick(9, 1);

/** The resource of the i-th deployment, at a version of its API. */
function deployment(i: number, version: string) {
	const [service, region] = [`service-${i % services}`, `region-${Math.floor(i / services)}`];
	return resourceOf(Deployment, {
		id: { ...idOf(Deployment, `${service}-${region}`), uid: `uid-${i}` },
		data: create(DeploymentSchema, { service, region, currentVersion: version }),
	});
}

/** A shadow: every second one references another deployment, and a hundredth of them is being deleted. */
function shadow(i: number, deployments: number) {
	const name = `resource-${i}`;
	const resource = create(ResourceKeySchema, { group: "alpha", kind: "Thing", name });
	const uid = `uid-${i % deployments}`;
	const target = create(ResourceKeySchema, { ...resource, region: "elsewhere" });
	return create(ShadowSchema, {
		resource,
		uid: name,
		lifecycle: i % 100 === 0 ? Lifecycle.DELETING : Lifecycle.ACTIVE,
		outgoing: i % 2 === 0 ? [] : [create(OutgoingReferenceSchema, { target, deploymentUid: uid })],
		sources: [create(SourceSchema, { deployment: create(DeployedSchema, { uid }) })],
	});
}

/** The median duration of a run, in microseconds. */
async function median(run: (i: number) => unknown, times = rounds): Promise<number> {
	const durations: number[] = [];
	for (let i = 0; i < times; i++) {
		const start = performance.now();
		await run(i);
		durations.push((performance.now() - start) * 1_000);
	}
	return durations.sort((a, b) => a - b)[Math.floor(times / 2)] ?? 0;
}

async function measure(deployments: number): Promise<readonly Row[]> {
	const view = new RegistryView();
	const listeners = new Set<() => void>();
	for (let i = 0; i < deployments; i++) {
		view.apply("meta", deployment(i, "v1"), "stored");
	}
	const environment: Environment = {
		...localEnvironment("uid-0"),
		deployments: () => [...view.deployments().values()],
		byUid: (uid) => view.deployments().get(uid),
		successorOf: (uid) => view.successorOf(uid),
		find: (service, region) => view.find(service, region),
		onChange: (listener) => {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
	};
	const backend = createMemoryBackend();
	const index = new ShadowIndex(backend, systemRuntime, silentLogger);
	const deletions = new HeldDeletions(index);
	const end = new AbortController();
	const running = index.run(end.signal);
	let version = "";
	for (let i = 0; i < shadows; i++) {
		const record = { case: "shadow", value: shadow(i, deployments) } as const;
		({ version } = await backend.commit([putRecord(systemRuntime, `s-${i}`, undefined, record)]));
	}
	await index.reached(version);
	const queued = new Set<string>();
	const descriptor = new ServiceDescriptor({ types: [Thing], service: "alpha" });
	const concerned = new ConcernedShadows({ index, environment, descriptor });
	const unfollow = concerned.follow((name) => queued.add(name));

	const place = (i: number) => [`service-${i % services}`, "region-0"] as const;
	const lookup = await median((i) => view.find(...place(i)));
	const scan = await median((i) => {
		const [service, region] = place(i);
		return environment
			.deployments()
			.filter((each) => each.service === service && each.region === region);
	});
	const change = await median((i) => {
		view.apply("meta", deployment(1, `v${i}`), "stored");
		for (const listener of listeners) {
			listener();
		}
	});
	const visit = await median(() => {
		for (const stored of index.all()) {
			if (stored.shadow.outgoing.some(({ deploymentUid }) => deploymentUid !== "")) {
				queued.add(stored.name);
			}
		}
	});
	const connect = await median(async (i) => {
		const follower = new AbortController();
		const feed = deletionFeed({ deletions, index }, `uid-${i % deployments}`, follower.signal);
		for await (const { kind } of feed) {
			if (kind === "end-of-snapshot") {
				break;
			}
		}
		follower.abort();
	});
	const connectVisiting = await median((i) => {
		const found = [];
		for (const stored of index.all()) {
			const isHeld = holders(stored.shadow).some(({ uid }) => uid === `uid-${i % deployments}`);
			if (isHeld && stored.shadow.lifecycle === Lifecycle.DELETING) {
				found.push(stored);
			}
		}
		return found;
	});
	unfollow();
	end.abort();
	await running;
	await backend.close();
	const row = (what: string, us: number, visitingUs: number): Row => ({
		"duration in µs": what,
		indexed: us.toFixed(1),
		"visiting all": visitingUs.toFixed(1),
		ratio: (us / visitingUs).toFixed(3),
	});
	return [
		row("find the deployment of a foreign reference", lookup, scan),
		row("a change of the registry", change, visit),
		row("a follower connects", connect, connectVisiting),
	];
}

/** The durations of a commit with and without a foreign reference, and of a start, in microseconds. */
interface Durations {
	readonly plain: number;
	readonly foreign: number;
	readonly start: number;
}

/** Deployments that are registered, and of which nothing is to be told. */
const quiet = createInProcessTransport((router) =>
	router.service(SchemaMixinService, {
		// biome-ignore lint/correctness/useYield: nothing is deleted there.
		async *watchImportedServiceDeletions(_request, { signal }) {
			await aborted(signal);
		},
	}),
);

async function measureCalls(deployments: number): Promise<Durations> {
	const network = new BenchNetwork(quiet);
	await using meta = await network.start(metaSpec);
	await using alpha = await network.start(alphaSpec);
	for (let i = 0; i < deployments; i++) {
		const resource = deployment(i, "v1");
		await meta.client.write({ resource: { ...resource, id: idOf(Deployment, `other-${i}`) } });
	}
	await using beta = await network.start(betaSpec);
	await alpha.client.write({ resource: thing("target") });
	const plain = await median((i) => alpha.client.write({ resource: thing(`thing-${i}`) }));
	const needs = referenceTo({ name: "target" });
	const foreign = await median((i) => {
		const data = create(WidgetSchema, { needs });
		const resource = resourceOf(Widget, { id: idOf(Widget, `widget-${i}`), data });
		return beta.client.write({ resource });
	});
	const started: BenchServer[] = [];
	const start = await median(async (i) => {
		started.push(await network.start({ ...betaSpec, region: `started-${i}` }));
	}, starts);
	for (const server of started) {
		await server[Symbol.asyncDispose]();
	}
	return { plain, foreign, start };
}

function thing(name: string) {
	return resourceOf(Thing, { id: idOf(Thing, name) });
}

for (const deployments of sizes) {
	printTable(`${deployments} deployments, ${shadows} shadows`, await measure(deployments));
}

// Timers of Plinth keep no process alive.
const alive = setInterval(() => {}, 1_000);
const byDeployments = new Map<number, Durations>();
// Without a first run, the code would be compiled during the run with the fewest deployments.
await measureCalls(Math.min(...sizes));
for (const deployments of sizes) {
	byDeployments.set(deployments, await measureCalls(deployments));
}
clearInterval(alive);
const [fewest] = byDeployments.values();
for (const [what, name] of [
	["a write without references", "plain"],
	["a write with a foreign reference", "foreign"],
	["a start, until it serves", "start"],
] as const) {
	printTable(
		what,
		[...byDeployments].map(([deployments, durations]) => ({
			deployments: `${deployments}`,
			"duration in µs": durations[name].toFixed(0),
			[`÷ ${sizes[0]} deployments`]: (durations[name] / (fewest?.[name] ?? 1)).toFixed(2),
		})),
	);
}
