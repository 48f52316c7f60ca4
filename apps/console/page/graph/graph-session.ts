import { fromBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { KnownTypes } from "@plinth/documents";
import { ruleName } from "@plinth/documents";
import { type Resource, ResourceSchema } from "@plinth/proto";
import {
	type PlanDeletionResponse,
	ReferenceService,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { idOf, isMarkedForDeletion } from "@plinth/resource";
import type { Connection } from "../app/connection.ts";
import type { LiveClient, LiveView } from "../live/live-client.ts";
import { typeOfFamily } from "../model/known-types.ts";
import { deletionWaitsOf } from "./deletion-waits-of.ts";
import {
	type EdgeKind,
	GraphModel,
	type GraphView,
	nodeId,
	type Relation,
	type ResourceName,
} from "./graph-model.ts";

/** So many resources are followed at a time: those that are expanded. */
const mostExpanded = 40;

/** What a session has to show. */
export interface GraphSnapshot {
	readonly view: GraphView;
	/** Why something around a resource can't be read; empty if all can. */
	readonly problem: string;
}

/** The graph around a resource. What is expanded is followed, and read again when it changes. */
export class GraphSession {
	readonly #connection: Connection;
	readonly #live: LiveClient;
	readonly #types: KnownTypes;
	readonly #model: GraphModel;
	readonly #expanded = new Map<string, LiveView>();
	readonly #listeners = new Set<() => void>();
	#snapshot: GraphSnapshot;
	#isClosed = false;

	constructor(connection: Connection, live: LiveClient, types: KnownTypes, root: ResourceName) {
		this.#connection = connection;
		this.#live = live;
		this.#types = types;
		this.#model = new GraphModel(root);
		this.#snapshot = { view: this.#model.view(), problem: "" };
	}

	/** What is shown. The object is the same until it changes. */
	readonly snapshot = (): GraphSnapshot => this.#snapshot;

	/** Calls the listener after each change, until the returned function is called. */
	readonly subscribe = (listener: () => void): (() => void) => {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	};

	/** Follows the root. The returned function ends the session. */
	open(): () => void {
		this.#isClosed = false;
		this.expand(this.#model.root);
		return () => {
			this.#isClosed = true;
			for (const view of this.#expanded.values()) {
				view.close();
			}
			this.#expanded.clear();
		};
	}

	/** Shows what is around a resource, if it is one of this deployment. */
	expand(name: ResourceName): void {
		const id = nodeId(name);
		const type = typeOfFamily(this.#types, name);
		if (this.#expanded.has(id) || type === undefined) {
			return;
		}
		if (this.#expanded.size === mostExpanded) {
			this.#show(`at most ${mostExpanded} resources are expanded at a time: fold some of them`);
			return;
		}
		const { partition, namespace } = name;
		const { group, groupVersion, kind } = type.type;
		const request = {
			...{ kind: "resource" as const, type: { group, groupVersion, kind } },
			...{ tenancy: { partition, namespace }, name: name.name },
		};
		this.#expanded.set(
			id,
			this.#live.open(request, {
				onUpdate: ({ content }) => {
					if (content?.kind === "resource" && content.bytes !== undefined) {
						void this.#read(name, fromBinary(ResourceSchema, content.bytes));
					}
				},
			}),
		);
	}

	/** Shows no longer what is around a resource. */
	collapse(id: string): void {
		if (id !== nodeId(this.#model.root)) {
			this.#expanded.get(id)?.close();
			this.#expanded.delete(id);
			this.#model.collapse(id);
			this.#show("");
		}
	}

	/** Shows the resources of a cluster one by one. */
	openCluster(id: string): void {
		this.#model.openCluster(id);
		this.#show("");
	}

	async #read(name: ResourceName, resource: Resource): Promise<void> {
		const client = this.#connection.client(ReferenceService);
		const type = typeOfFamily(this.#types, name);
		if (type === undefined) {
			return;
		}
		const id = idOf(type, name.name, name);
		try {
			const { targets, incoming, hidden } = await client.listReferences({ id });
			const relations: readonly Relation[] = [
				...ownersOf(resource).map((owner) => ({
					...{ from: owner, to: name, kind: "owns" as const, paths: [] },
				})),
				...targets.flatMap(({ path, resource: target, rule }) =>
					target ? [{ from: name, to: plain(target), kind: kindOf(rule), paths: [path] }] : [],
				),
				...incoming.flatMap(({ resource: other, paths, rules, isOwnee }) =>
					other === undefined
						? []
						: [
								...(isOwnee
									? [{ from: name, to: plain(other), kind: "owns" as const, paths: [] }]
									: []),
								...paths.map((path, at) => ({
									...{ from: plain(other), to: name, paths: [path] },
									kind: kindOf(rules[at] ?? 0),
								})),
							],
				),
			];
			const plan =
				nodeId(name) === nodeId(this.#model.root) && isMarkedForDeletion(resource)
					? await client.planDeletion({ id })
					: undefined;
			if (!this.#isClosed && this.#expanded.has(nodeId(name))) {
				this.#model.surround(name, { relations, hidden });
				if (plan !== undefined) {
					this.#mark(plan);
				}
				this.#show("");
			}
		} catch (error) {
			this.#show(ConnectError.from(error).rawMessage);
		}
	}

	/** Marks the way from the root to what its deletion waits for, and expands what is on it. */
	#mark({ effects }: PlanDeletionResponse): void {
		const waits = deletionWaitsOf(effects);
		this.#model.wait(waits);
		const inner = waits.filter(({ waitsFor }) => waitsFor.length > 0);
		for (const { name } of inner.slice(0, mostExpanded / 2)) {
			this.expand(name);
		}
	}

	#show(problem: string): void {
		this.#snapshot = { view: this.#model.view(), problem };
		for (const listener of [...this.#listeners]) {
			listener();
		}
	}
}

function ownersOf({ owner, ownerReferences }: Resource): readonly ResourceName[] {
	return [...(owner === undefined ? [] : [owner]), ...ownerReferences].flatMap((each) => {
		const { type, tenancy, name } = each;
		const { region = "" } = each;
		return type === undefined
			? []
			: [
					{
						...{ group: type.group, kind: type.kind, name, region },
						...{ partition: tenancy?.partition ?? "", namespace: tenancy?.namespace ?? "" },
					},
				];
	});
}

function plain({ group, kind, partition, namespace, name, region }: ResourceName): ResourceName {
	return { group, kind, partition, namespace, name, region };
}

function kindOf(rule: Parameters<typeof ruleName>[0]): EdgeKind {
	const name = ruleName(rule);
	return name === "cascade" || name === "unset" ? name : "block";
}
