import { create } from "@bufbuild/protobuf";
import { NamespaceSchema, PartitionSchema, type Resource } from "@plinth/proto";
import { idOf, Namespace, newUlid, Partition, resourceOf } from "@plinth/resource";
import type { Mutation } from "@plinth/storage";
import { deploymentRecord } from "../deployment-record.ts";
import type { DeploymentInfo, Environment } from "../environment.ts";
import { localEnvironment } from "../local-environment.ts";
import { recordOf } from "../shadow-records.ts";
import { type SimulatedSchema, schemasOf } from "./schemas.ts";
import { Server } from "./server.ts";
import { Truth } from "./truth.ts";
import type { World } from "./world.ts";

/** A service of a simulation. */
export interface SimulatedService {
	readonly name: string;
	readonly type: SimulatedSchema["type"];
	/** The one that it begins with, and those that it may be switched to. */
	readonly schemas: readonly [SimulatedSchema, ...SimulatedSchema[]];
	/** The services whose deletions it follows. */
	readonly follows: readonly string[];
}

const things = schemasOf("alpha");
const widgets = schemasOf("beta");

/** Keeps things. */
export const alpha: SimulatedService = {
	name: "alpha",
	type: things[0].type,
	schemas: things,
	follows: ["alpha"],
};

/** Keeps widgets, which reference things, too. */
export const beta: SimulatedService = {
	name: "beta",
	type: widgets[0].type,
	schemas: widgets,
	follows: ["alpha", "beta"],
};

/** The services, and the regions in which each has a deployment. */
export const services = [alpha, beta] as const;
export const regions = ["r1", "r2"] as const;
/** The namespaces that each deployment begins with. */
export const namespaces = ["default", "other"] as const;

/** A service in a region: a storage that stays, and servers that come and go. */
export class Deployment {
	/** Its uid is empty until it has registered. */
	readonly info: { -readonly [Key in keyof DeploymentInfo]: DeploymentInfo[Key] };
	readonly service: SimulatedService;
	readonly truth: Truth;
	/** The schema of servers that start from now on. */
	schema: SimulatedSchema;
	/** Who it is, for those who know everything: no server uses it. */
	readonly environment: Environment;
	servers: readonly Server[] = [];
	readonly #world: World;

	constructor(world: World, service: SimulatedService, region: string) {
		this.#world = world;
		this.service = service;
		[this.schema] = service.schemas;
		this.info = {
			uid: "",
			name: `${service.name}-${region}`,
			service: service.name,
			region,
			version: "v1",
			disabled: false,
			predecessorUid: "",
		};
		this.environment = { ...localEnvironment(""), self: this.info };
		this.truth = new Truth(world);
		this.truth.onCommit((_mutations, { resources }) => {
			for (const resource of resources) {
				this.#learn(resource);
			}
		});
		this.truth.onCommit((mutations, commit) => world.observer.saw(this, mutations, commit));
	}

	/** The deployment knows by which uid it has registered, once its storage does. */
	#learn(resource: Resource | undefined): void {
		if (resource?.id?.name !== deploymentRecord) {
			return;
		}
		const { record } = recordOf(resource);
		if (record.case === "deployment" && record.value.uid !== this.info.uid) {
			this.info.uid = record.value.uid;
			this.#world.story.tell(this.info.name, () => "is registered");
		}
	}

	/** Stores the tenancy, and starts as many servers. */
	begin(servers: number): void {
		const { runtime } = this.#world;
		const units = [
			resourceOf(Partition, { id: idOf(Partition, "default"), data: create(PartitionSchema) }),
			...namespaces.map((name) =>
				resourceOf(Namespace, { id: idOf(Namespace, name), data: create(NamespaceSchema) }),
			),
		];
		const puts = units.map(({ id, ...rest }): Mutation => {
			const uid = newUlid(runtime);
			const resource = { ...rest, ...(id && { id: { ...id, uid } }), generation: newUlid(runtime) };
			return { op: "put", resource, expectedVersion: "" };
		});
		this.truth.commit(puts);
		for (let started = 0; started < servers; started++) {
			this.start();
		}
	}

	/** Starts a server. */
	start(): void {
		const server = new Server(this.#world, this);
		this.servers = [...this.servers, server];
		server.start();
		this.#world.story.tell(this.info.name, () => "a server starts");
	}

	/** Ends a server at once. */
	crash(server: Server): void {
		this.#world.story.tell(this.info.name, () => "a server crashes");
		this.servers = this.servers.filter((each) => each !== server);
		server.crash();
	}

	/** Servers that start from now on have that schema. */
	switchTo(schema: SimulatedSchema): void {
		this.#world.story.tell(this.info.name, () => `the schema is switched to "${schema.name}"`);
		this.schema = schema;
	}
}
