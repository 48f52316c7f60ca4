import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { createCancelingClient } from "@plinth/transport";
import type { InProcessTransport } from "./transport.ts";

/**
 * A client of a service, like those of Connect's `createClient`, with less overhead. It also cancels a
 * stream when its reader stops reading: after a `break`, or `return()` on the iterator, the handler's
 * signal aborts at once.
 */
export function createInProcessClient<S extends DescService>(
	service: S,
	transport: InProcessTransport,
): Client<S> {
	return createCancelingClient(service, transport);
}
