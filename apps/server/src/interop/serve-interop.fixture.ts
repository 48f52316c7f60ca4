import { TestService } from "../../testdata/grpc-interop/gen/grpc/testing/test_pb.ts";
import type { Issued } from "../certificates.fixture.ts";
import { servePlinth } from "../conformance/serve-conformance.fixture.ts";
import { interopService } from "./interop-service.fixture.ts";

/** Serves the service of gRPC's interoperability tests, to requests of at most 4 MiB. Returns the port. */
export function serveInterop(tls?: Issued): Promise<number> {
	return servePlinth(
		{ httpVersion: 2, tls, messageBytes: 4 * 1024 ** 2, isCompressed: false },
		(router) => router.service(TestService, interopService),
	);
}
