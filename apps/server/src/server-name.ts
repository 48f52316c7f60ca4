import { hostname } from "node:os";

/** The name of this process among the servers of a cluster, for people. */
export const serverName = `${hostname()}/${process.pid}`;
