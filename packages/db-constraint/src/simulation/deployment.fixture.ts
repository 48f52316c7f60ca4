import { create } from "@bufbuild/protobuf";
import { NamespaceSchema, PartitionSchema, type Resource } from "@plinth/proto";
import { decodeShared, idOf, Namespace, newUlid, Partition, resourceOf } from "@plinth/resource";
import type { Mutation } from "@plinth/storage";
import type { DeploymentInfo, Environment } from "../registry/environment.ts";
import { localEnvironment } from "../registry/local-environment.ts";
import { DeletedDeployment } from "../registry/meta-types.ts";
import { ResourceShadow, recordOf } from "../shadow/shadow-records.ts";
import { deploymentRecord } from "../succession/deployment-record.ts";
import { AuthoritativeStorage } from "./authoritative-storage.fixture.ts";
import type {
	KnownDeployments,
	SimulatedDeployment,
	SimulatedServer,
	SimulatedService,
} from "./participants.fixture.ts";
import { type SimulatedSchema, schemasOf, versionedSchemasOf } from "./schemas.fixture.ts";
import { Server } from "./server.fixture.ts";
import { ServerGroup } from "./server-group.fixture.ts";
import { SimulatedLeases } from "./simulated-leases.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

const things = schemasOf("alpha");
const widgets = schemasOf("beta");

/** The service of `Thing`s. */
export const alpha: SimulatedService = {
	name: "alpha",
	type: things[0].type,
	schemas: things,
	versions: versionedSchemasOf("alpha", things[0]),
};

/** The service of `Widget`s, which reference things too. */
const beta: SimulatedService = {
	name: "beta",
	type: widgets[0].type,
	schemas: widgets,
	versions: versionedSchemasOf("beta", widgets[0]),
};

/** The services, and the regions in which each of them has a deployment. */
export const services = [alpha, beta] as const;
export const regions = ["r1", "r2"] as const;
/** The initial namespaces of each deployment. */
export const namespaces = ["default", "other"] as const;

/** See `SimulatedDeployment`. */
export class Deployment implements SimulatedDeployment {
	readonly info: { -readonly [Key in keyof DeploymentInfo]: DeploymentInfo[Key] };
	readonly service: SimulatedService;
	schema: SimulatedSchema;
	readonly environment: Environment;
	readonly sharedAddress: string | undefined;
	readonly #sim: SimulationContext;
	readonly #authoritative: AuthoritativeStorage;
	readonly #group: ServerGroup<Server>;
	#addressBefore: string | undefined;
	isGone = false;
	isForced = false;
	wasForced = false;
	#schemaBefore: SimulatedSchema;

	constructor(sim: SimulationContext, service: SimulatedService, region: string) {
		this.#sim = sim;
		this.service = service;
		this.schema = sim.versionsDiffer ? firstOf(sim, service, region) : service.schemas[0];
		this.#schemaBefore = this.schema;
		this.info = {
			uid: "",
			name: `${service.name}-${region}`,
			service: service.name,
			region,
			version: "v1",
			disabled: false,
			predecessorUid: "",
		};
		this.sharedAddress = sim.sharesAddresses ? `http://${this.info.name}.balanced` : undefined;
		this.environment = { ...localEnvironment(""), self: this.info };
		const leases = new SimulatedLeases(sim);
		const authoritative = new AuthoritativeStorage(sim, leases, sim.hasLoss);
		this.#authoritative = authoritative;
		this.#group = new ServerGroup(sim, {
			name: this.info.name,
			authoritative,
			create: () => new Server(sim, this, { authoritative, leases }, this.#addressBefore),
		});
		this.#authoritative.onCommit((_mutations, { resources }) => {
			for (const resource of resources) {
				this.#learnUid(resource);
			}
		});
		this.#authoritative.onCommit((mutations, commit, _changes, fence) =>
			sim.observer.onCommit(this, mutations, commit, fence),
		);
	}

	/** Takes over the uid under which the deployment has registered, once its storage has recorded it. */
	#learnUid(resource: Resource | undefined): void {
		if (resource?.id?.name !== deploymentRecord) {
			return;
		}
		const { record } = recordOf(resource);
		if (record.case === "deployment" && record.value.uid !== this.info.uid) {
			this.info.uid = record.value.uid;
			this.#sim.trace.add(this.info.name, () => "is registered");
		}
	}

	begin(servers: number): void {
		const { runtime } = this.#sim;
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
		this.#authoritative.commit(puts);
		for (let started = 0; started < servers; started++) {
			this.start();
		}
	}

	get servers(): readonly Server[] {
		return this.#group.running;
	}

	start(): void {
		this.#group.start();
	}

	knownDeployments(): KnownDeployments {
		const entries = [...this.#authoritative.all()].flatMap((resource) => {
			const isRecord = resource.id?.type?.kind === ResourceShadow.type.kind;
			const record = isRecord ? recordOf(resource).record : undefined;
			return record?.case === "registryEntry" ? (record.value.resource ?? []) : [];
		});
		const isDeletion = ({ id }: Resource) => id?.type?.kind === DeletedDeployment.type.kind;
		return {
			stored: new Set(entries.map(({ id }) => id?.uid ?? "")),
			deleted: new Set(
				entries.filter(isDeletion).map((each) => decodeShared(DeletedDeployment, each).data.uid),
			),
		};
	}

	endpoints(): readonly string[] {
		return this.#group.recorded();
	}

	crash(server: SimulatedServer): void {
		this.#addressBefore = server.address;
		this.#group.crash(server);
	}

	halt(): void {
		this.#addressBefore = this.servers.at(-1)?.address ?? this.#addressBefore;
		this.#group.halt();
	}

	resume(): void {
		this.#group.resume();
	}

	backUp(): () => void {
		this.#sim.trace.add(this.info.name, () => "is backed up");
		const backup = this.#authoritative.backUp();
		const restored = this.#sim.observer.backUp(this);
		return () => {
			this.#sim.trace.add(this.info.name, () => "is restored from the backup");
			const { incarnation = "" } = this.#authoritative.identity ?? {};
			this.#authoritative.restore(backup);
			this.#sim.meta.storageReplaced(incarnation);
			this.#sim.meta.otherRestored(this.knownDeployments());
			restored();
		};
	}

	abandon(): void {
		this.#sim.trace.add(this.info.name, () => "is abandoned");
		this.isGone = true;
		this.#sim.observer.gone(this);
	}

	switchTo(schema: SimulatedSchema, force = false): void {
		const how = force ? " by force" : "";
		this.#sim.trace.add(this.info.name, () => `the schema is switched to "${schema.name}"${how}`);
		this.#schemaBefore = this.schema;
		this.schema = schema;
		this.isForced = force;
		this.wasForced ||= force;
	}

	refused(): void {
		if (this.schema === this.#schemaBefore) {
			return;
		}
		this.switchTo(this.#schemaBefore);
		for (const server of this.servers) {
			if (server.schema !== this.schema) {
				this.crash(server);
				this.start();
			}
		}
	}
}

/** The schema with which a deployment starts if versions differ by region. */
function firstOf(
	sim: SimulationContext,
	{ name, versions: { v1, both, v2 } }: SimulatedService,
	region: string,
): SimulatedSchema {
	if (region === regions[0]) {
		return name === alpha.name ? sim.pick([v1, both]) : sim.pick([v1, v1, both]);
	}
	return name === alpha.name ? sim.pick([both, v2]) : sim.pick([v1, both, v2]);
}
