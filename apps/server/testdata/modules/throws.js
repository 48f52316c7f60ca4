throw new Error("no music today");
