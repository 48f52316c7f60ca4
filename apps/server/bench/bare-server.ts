/* The resource service behind Connect's own adapter: no tokens, limits, metrics or audit. */
import { createServer } from "node:http2";
import { createRegistry } from "@bufbuild/protobuf";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { ArtistSchema } from "../testdata/gen/music/v1/music_pb.ts";
import { Artist } from "../testdata/music.ts";

const backend = createMemoryBackend();
await ensureDefaultTenancy(backend, systemRuntime);
const service = createResourceService({
	backend,
	registry: new TypeRegistry([Partition, Namespace, Tombstone, Artist]),
	authorizer: insecureAllowAll,
});
const server = createServer(
	// As the product allows; 64 lists on one connection exceed the default.
	{ maxSessionMemory: 64 },
	connectNodeAdapter({
		routes: (router) => router.service(ResourceService, service),
		jsonOptions: { registry: createRegistry(ArtistSchema) },
	}),
);
server.listen(0, "127.0.0.1", () => {
	const address = server.address();
	if (typeof address !== "object" || address === null) {
		throw new Error("the server listens on no port");
	}
	process.stdout.write(`http://127.0.0.1:${address.port}\n`);
});
