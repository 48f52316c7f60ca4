#!/usr/bin/env node
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("plinth")) {
	void import("./run-plinth.ts").then(({ runPlinth }) => runPlinth());
}
