import type { Client } from "@connectrpc/connect";
import type { ResourceService } from "@plinth/proto";

/** A Connect client of the resource service, of whatever transport. */
export type ResourceClient = Client<typeof ResourceService>;
