"""From a token store, or from labelled rows, to packed batches: order, pairs, masks, windows."""
