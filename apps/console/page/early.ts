/** A script of its own, which runs before the rest of the page has arrived: the worker takes longest to start. */
import { startLiveWorker } from "./live/worker-port.ts";

startLiveWorker();
