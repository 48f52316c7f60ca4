/**
 * What the number of deployments costs one of them: a lookup for a foreign reference, a change of the registry, and a
 * follower that connects. Each is compared with visiting everything there is.
 */
import { create } from "@bufbuild/protobuf";
import { printTable, type Row, unlessQuick } from "@plinth/bench";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import {
	DeployedSchema,
	Lifecycle,
	OutgoingReferenceSchema,
	ResourceKeySchema,
	ShadowSchema,
	SourceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { silentLogger, systemRuntime } from "@plinth/runtime";
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
import { Thing } from "../testdata/types.ts";

const services = 20;
const shadows = unlessQuick(20_000, 200);
const sizes = unlessQuick([20, 200, 1_000], [20]);
const rounds = unlessQuick(200, 2);

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
async function median(run: (i: number) => unknown): Promise<number> {
	const times: number[] = [];
	for (let i = 0; i < rounds; i++) {
		const start = performance.now();
		await run(i);
		times.push((performance.now() - start) * 1_000);
	}
	return times.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0;
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
		const feed = deletionFeed(deletions, `uid-${i % deployments}`, follower.signal);
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

for (const deployments of sizes) {
	printTable(`${deployments} deployments, ${shadows} shadows`, await measure(deployments));
}
