import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { defineIndex } from "@plinth/cache";
import { createInProcessTransport } from "@plinth/in-process";
import { ControllerService, OriginSchema, type Resource, ResourceSchema } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, type DemoType, demo } from "../demo-types.fixture.ts";
import { createControllerService } from "../manager/controller-service.ts";
import { TestBench } from "../running-manager.fixture.ts";

/** As stored by a program in which field 1 was a number: its type reads a length there, and fails. */
function undecodable(type: DemoType, name: string): Resource {
	const resource = demo(type, name);
	const typeUrl = resource.data?.typeUrl ?? "";
	return { ...resource, data: create(AnySchema, { typeUrl, value: Uint8Array.of(0x0a, 0x7f, 1) }) };
}

const albumsByTitle = defineIndex("title", Album, {
	keys: ({ data }) => [[data.value]],
	key: (title: string) => [title],
	required: true,
});

function recorder() {
	const reconciled: string[] = [];
	const controller = defineController({
		name: "artist",
		manages: Artist,
		indexes: [albumsByTitle],
		watches: [watch(Album, { map: (_, { data }) => [idOf(Artist, data.value)] })],
		async reconcile(context, { id }) {
			const artist = context.cache.get(Artist, id);
			const albums = context.cache.list(albumsByTitle, id.name);
			reconciled.push(`${id.name}:${artist?.data.value}:${albums.length}`);
		},
	});
	return { controller, reconciled };
}

it("a controller does not reconcile what an import creates, and still maps it", async () => {
	await using bench = new TestBench();
	const copied = { origin: create(OriginSchema, { cluster: "west" }) };
	bench.service.put({ ...demo(Artist, "ella", "voice"), ...copied });
	bench.service.put({ ...demo(Album, "blue", "miles"), ...copied });
	bench.service.put(demo(Artist, "miles", "trumpet"));
	const { controller, reconciled } = recorder();
	await bench.start([controller]);
	expect(reconciled).toEqual(["miles:trumpet:1"]);
	bench.service.put({ ...demo(Artist, "ella", "scat"), ...copied });
	bench.service.put({ ...demo(Album, "bess", "ella"), ...copied });
	bench.service.put({ ...demo(Album, "kind", "miles"), ...copied });
	await bench.advance(1_000);
	expect(reconciled).toEqual(["miles:trumpet:1", "miles:trumpet:2"]);
});

describe("a controller whose types can't decode what is stored", () => {
	it("starts, reconciles all others, and reports it, without retries", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "miles", "trumpet"));
		bench.service.put(undecodable(Artist, "nina"));
		bench.service.put(demo(Album, "blue", "miles"));
		bench.service.put(undecodable(Album, "broken"));
		const { controller, reconciled } = recorder();
		const manager = await bench.start([controller]);
		expect(bench.state("artist")).toMatchObject({ phase: "running", restarts: 0 });
		expect(reconciled).toEqual(["miles:trumpet:1"]);

		await bench.advance(3_600_000);
		expect(reconciled).toEqual(["miles:trumpet:1"]);
		const errors = bench.log.filter(({ level }) => level === "error" || level === "warn");
		expect(errors.map(({ message }) => message)).toEqual([
			"resource can't be decoded and is not reconciled or mapped",
			"resource can't be decoded and is not reconciled or mapped",
		]);
		const { undecodable: reported } = bench.state("artist").run ?? {};
		expect(reported?.count).toBe(2);
		expect([...(reported?.errors ?? [])].sort()).toEqual([
			expect.stringMatching(/demo\.v1\.Album.*broken.*can't be decoded: malformed/),
			expect.stringMatching(/demo\.v1\.Artist.*nina.*can't be decoded: malformed/),
		]);
		const transport = createInProcessTransport((router) => {
			router.service(
				ControllerService,
				createControllerService(manager, {
					read: async (id) => create(ResourceSchema, id && { id }),
				}),
			);
		});
		const { controllers } = await createClient(ControllerService, transport).listControllers({});
		expect(controllers[0]?.undecodable).toMatchObject({ count: 2, errors: reported?.errors });
	});

	it("does not see the resource as deleted, and continues with its next version", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "nina", "piano"));
		const { controller, reconciled } = recorder();
		await bench.start([controller]);
		bench.service.put(undecodable(Artist, "nina"));
		bench.service.put(demo(Album, "blue", "nina"));
		await bench.settle();
		expect(reconciled).toEqual(["nina:piano:0"]);
		expect(bench.state("artist").run?.undecodable.count).toBe(1);

		bench.service.put(demo(Artist, "nina", "voice"));
		await bench.settle();
		expect(reconciled).toEqual(["nina:piano:0", "nina:voice:1"]);
		expect(bench.state("artist").run?.undecodable).toEqual({ count: 0, errors: [] });
	});

	it("maps the version before, so that what depended on it is reconciled", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "miles", "trumpet"));
		bench.service.put(demo(Album, "blue", "miles"));
		const { controller, reconciled } = recorder();
		await bench.start([controller]);
		bench.service.put(undecodable(Album, "blue"));
		await bench.settle();
		expect(reconciled).toEqual(["miles:trumpet:1", "miles:trumpet:0"]);
		expect(bench.state("artist").run?.undecodable.count).toBe(1);
		bench.service.remove(idOf(Album, "blue"));
		await bench.settle();
		expect(bench.state("artist").run?.undecodable.count).toBe(0);
	});
});
