import type { Client } from "@connectrpc/connect";
import type { ResourceService } from "@plinth/proto";

/** A Connect client of the resource service, over any transport. */
export type ResourceClient = Client<typeof ResourceService>;
