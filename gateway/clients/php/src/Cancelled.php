<?php

// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

declare(strict_types=1);

namespace Signpost;

/** The call's `cancelled` returned true. The request may have been executed. */
class Cancelled extends \RuntimeException
{
}
