import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { ID, Resource, ResourceService } from "@plinth/proto";
import { decode, idOf, type ResourceType, resourceOf, typeOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { createServer, type Server } from "@plinth/server";
import { createCatalogModule } from "../src/catalog-module.ts";
import {
	HealthCheck,
	type ProbeTarget,
	Service,
	ServiceEndpoints,
	Workload,
} from "../src/index.ts";
import { addressOf } from "../src/probe/target.ts";

/** What a workload is declared with. */
export interface WorkloadInit {
	readonly host?: string;
	readonly ports?: Readonly<Record<string, number>>;
}

/** A catalog in memory, on a clock that stands still, with a network that the test makes up. */
export class TestCatalog implements AsyncDisposable {
	readonly clock = new FakeClock();
	/** The addresses that respond. */
	readonly up = new Set<string>();
	/** The addresses that accept and then say nothing. */
	readonly silent = new Set<string>();
	/** Each address that was probed, in order. */
	readonly probed: string[] = [];
	readonly #server: Server;

	constructor() {
		this.#server = createServer({
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port: 0 },
			runtime: { ...systemRuntime, clock: this.clock },
			modules: [createCatalogModule((target, signal) => this.#probe(target, signal))],
		});
	}

	static async start(): Promise<TestCatalog> {
		const catalog = new TestCatalog();
		await catalog.#server.start();
		await catalog.settle();
		return catalog;
	}

	get client(): Client<typeof ResourceService> {
		return this.#server.client;
	}

	/** Lets everything happen that needs no time. */
	async settle(): Promise<void> {
		await this.advance(0);
	}

	/** Lets time pass, and everything happen that comes of it. */
	async advance(byMs: number): Promise<void> {
		await this.clock.advanceAsync(byMs);
		// What fails by a conflict tries again after a few milliseconds.
		await this.clock.advanceAsync(20);
	}

	service(name: string, workloadPrefix: string, portName = "http"): Promise<Resource> {
		return this.write(Service, name, { workloadPrefix, portName });
	}

	/** A workload; without a host it has one of its own. */
	workload(name: string, { host = `${name}.test`, ports = { http: 80 } }: WorkloadInit = {}) {
		return this.write(Workload, name, { host, ports: { ...ports } });
	}

	/** A check of a workload's port by HTTP, every second for half a second. */
	check(name: string, workload: string, portName = "http"): Promise<Resource> {
		return this.write(
			HealthCheck,
			name,
			{
				probe: { case: "http", value: { portName } },
				intervalMs: 1_000,
				timeoutMs: 500,
			},
			idOf(Workload, workload),
		);
	}

	async write<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		name: string,
		data: MessageInitShape<Desc>,
		owner?: ID,
	): Promise<Resource> {
		const { resource } = await this.#whileTimePasses(
			this.client.write({
				resource: resourceOf(type, {
					id: idOf(type, name),
					data: create(type.schema, data),
					...(owner && { owner }),
				}),
			}),
		);
		if (resource === undefined) {
			throw new Error("the response to a write has no resource");
		}
		return resource;
	}

	async delete(type: ResourceType, name: string): Promise<void> {
		await this.#whileTimePasses(this.client.delete({ id: idOf(type, name) }));
	}

	async all<Desc extends DescMessage>(type: ResourceType<Desc>) {
		const { resources } = await this.client.list({ type: typeOf(type.type), tenancy: {} });
		return resources.map((resource) => decode(type, resource));
	}

	/** The endpoints of a service as `host:port`, or `undefined` if none exist yet. */
	async endpoints(service: string): Promise<readonly string[] | undefined> {
		const all = await this.all(ServiceEndpoints);
		const found = all.find(({ resource }) => resource.id?.name === service);
		return found?.data.endpoints.map(({ host, port }) => `${host}:${port}`);
	}

	async [Symbol.asyncDispose](): Promise<void> {
		await this.#whileTimePasses(this.#server.stop());
	}

	/** A write that meets a conflict tries again after a while. */
	async #whileTimePasses<T>(call: Promise<T>): Promise<T> {
		let settled = false;
		const end = () => {
			settled = true;
		};
		call.then(end, end);
		await this.clock.advanceAsync(0);
		while (!settled) {
			await this.clock.advanceAsync(1);
		}
		return call;
	}

	async #probe(target: ProbeTarget, signal: AbortSignal) {
		const address = addressOf(target);
		this.probed.push(address);
		if (this.silent.has(address)) {
			await new Promise((_, reject) => {
				signal.addEventListener("abort", () => reject(signal.reason), { once: true });
			});
		}
		const passed = this.up.has(address);
		return { passed, reason: passed ? "Up" : "Down", message: address };
	}
}
