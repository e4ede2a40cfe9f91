/* SPDX-License-Identifier: Apache-2.0
 *
 * images.h - images with a class each, x[3][side][side]: made, or read from records of CIFAR-10's binary version (Krizhevsky
 * 2009): a byte with the class, then a byte for each pixel of the red plane, the green one and the blue one.
 *
 * What is made. Each class has a pattern that wraps around, of 8 x 8 numbers a colour uniform on [-1, 1) with straight lines
 * between them, the same for every seed. An image is the pattern of its class, shifted by any number of pixels both ways, times
 * a contrast uniform on [0.5, 1.5), and noise uniform on [-1, 1) in each number. Class, shift, contrast and noise are drawn
 * from the key of the sample. All of it is sums and products of floats: the same bits on every machine.
 *
 * What is read. (value / 255 - mean) / deviation, with the mean and the deviation of each colour over CIFAR-10's 50,000 images
 * for training: 0.4914, 0.4822, 0.4465 and 0.2470, 0.2435, 0.2616.
 */
#pragma once

#include "models/layers/real.h"
#include "models/read/model.h"

/* Bytes of a record of such images. */
static inline uint32_t skep_image_record(uint32_t side)
{
	return 1 + SKEP_RESNET_COLOURS * side * side;
}

/* The key of sample `index` of a split (enum skep_tokens_split), drawn from `seed`. */
uint64_t skep_image_key(uint64_t seed, uint32_t split, uint64_t index);

/* The class; the image into ret_x, unless it is NULL. */
int32_t skep_image_make(uint64_t key, uint32_t side, uint32_t classes, skep_real *ret_x);
int32_t skep_image_read(const unsigned char *record, uint32_t side, skep_real *ret_x);
