#!/usr/bin/env node
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("plinth-server")) {
	void import("@plinth/server/process").then(({ runProcess }) => runProcess());
}
