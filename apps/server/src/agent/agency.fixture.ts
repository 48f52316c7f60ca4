import type { Client } from "@connectrpc/connect";
import { defineController } from "@plinth/controller";
import type { ResourceService } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { expect, vi } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { defineModule } from "../module/index.ts";

/** A module whose controller counts in a label of each artist how often it was reconciled, up to five. */
export function agency(placement: "singleton" | "sharded" = "singleton") {
	const reconciled: string[] = [];
	const rewinds: string[] = [];
	const written = new Map<string, bigint>();
	const controller = defineController({
		name: "agent",
		manages: Artist,
		placement,
		async reconcile(context, { id }) {
			const cached = context.cache.get(Artist, id);
			if (cached?.resource.id === undefined) {
				return;
			}
			const { resource } = cached;
			reconciled.push(id.name);
			if (BigInt(resource.version) < (written.get(id.name) ?? 0n)) {
				rewinds.push(`${id.name} at ${resource.version}`);
			}
			const count = Number(resource.metadata.concerts ?? 0);
			if (count < 5) {
				const { resource: stored } = await context.client.write({
					resource: {
						...resource,
						metadata: { ...resource.metadata, concerts: String(count + 1) },
					},
				});
				written.set(id.name, BigInt(stored?.version ?? 0));
			}
		},
	});
	const module = defineModule({ name: "agency", types: [Artist], controllers: [controller] });
	return { module, reconciled, rewinds };
}

/** What can write and read. */
export interface Calls {
	readonly client: Client<typeof ResourceService>;
}

/** Waits until artists have the label that says that they were reconciled five times. */
export async function allReconciled({ client }: Calls, ...names: string[]) {
	for (const name of names) {
		await vi.waitFor(
			async () => {
				const { resource } = await client.read({ id: idOf(Artist, name) });
				expect(resource?.metadata.concerts).toBe("5");
			},
			{ timeout: 300_000 },
		);
	}
}

export async function write({ client }: Calls, ...names: string[]) {
	for (const name of names) {
		await client.write({ resource: artist(name) });
	}
}
