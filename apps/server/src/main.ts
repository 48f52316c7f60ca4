#!/usr/bin/env node
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("plinth-server")) {
	void import("./command/run-process.ts").then(({ runProcess }) => runProcess());
}
